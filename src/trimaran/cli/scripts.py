"""The EC2 daemons under upstream's names, for units and charts that call them.

Magnum's commands are in ``trimaran.magnum.cli``.
"""

from __future__ import annotations

from trimaran.cli import run, services


def ec2_api() -> None:
    """``ec2-api``: serve the EC2 query API."""
    run(services.ec2_api, "ec2-api")


def ec2_api_metadata() -> None:
    """``ec2-api-metadata``: serve instance metadata."""
    run(services.ec2_metadata, "ec2-api-metadata")


def ec2_api_s3() -> None:
    """``ec2-api-s3``: serve the S3 stub."""
    run(services.ec2_s3, "ec2-api-s3")
