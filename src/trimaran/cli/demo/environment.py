"""What a newcomer (or a test of the demo) needs to talk to it: ``.demo/env``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trimaran.cli.demo.process import PORTS
from trimaran.cli.demo.proxy import Proxy
from trimaran.cli.demo.settings import Places, load_secrets, private

USER = "demo"


def build(places: Places, cloud: Mapping[str, Any]) -> dict[str, str]:
    """The variables of the demo, as the demo member.

    Args:
        places: where the demo keeps its files.
        cloud: what the sandbox says of itself.

    Returns:
        Name to value: ``OS_*``, the services' URLs, the EC2 keys, and the
        secrets that tests of the demo need.
    """
    person = cloud["users"][USER]
    keys = cloud["ec2"][USER]
    known = load_secrets(places, cloud)
    local = {name: f"http://127.0.0.1:{port}" for name, port in PORTS.items()}
    return {
        "OS_AUTH_URL": cloud["auth_url"],
        "OS_USERNAME": USER,
        "OS_PASSWORD": cloud["password"],
        "OS_PROJECT_NAME": person["project"],
        "OS_USER_DOMAIN_NAME": person["domain"],
        "OS_PROJECT_DOMAIN_NAME": person["domain"],
        "OS_REGION_NAME": cloud["region"],
        "OS_IDENTITY_API_VERSION": "3",
        "OS_INTERFACE": "public",
        "EC2_URL": local["ec2"] + "/",
        "S3_URL": local["s3"],
        "METADATA_URL": local["metadata"],
        "AWS_ACCESS_KEY_ID": keys["access"],
        "AWS_SECRET_ACCESS_KEY": keys["secret"],
        "AWS_DEFAULT_REGION": cloud["region"],
        "CONSOLE_URL": local["console"],
        "CONSOLE_UI_URL": Proxy(places).url,
        "MAGNUM_URL": local["magnum"] + "/v1",
        "CONSOLE_SECRET_KEY": known["console"],
        "METADATA_SECRET": known["metadata"],
        "MAGNUM_SANDBOX_DIR": str(places.magnum_sandbox),
    }


def write(path: Path, env: Mapping[str, str]) -> None:
    """Write the variables as a file to be sourced by a shell."""
    lines = ["unset OS_CLOUD OS_TOKEN OS_SYSTEM_SCOPE"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    private(path, "\n".join(lines) + "\n")


def summary(places: Places, env: Mapping[str, str]) -> str:
    """The last lines of the demo: where everything is, and how to stop."""
    return f"""
Everything runs.

  console        {env["CONSOLE_UI_URL"]}   (with a browser; same user and password)
  console API    {env["CONSOLE_URL"]}   (documentation: {env["CONSOLE_URL"]}/docs)
  EC2 API        {env["EC2_URL"]}
  EC2 metadata   {env["METADATA_URL"]}
  S3 stub        {env["S3_URL"]}
  Magnum API     {env["MAGNUM_URL"]}
  Keystone       {env["OS_AUTH_URL"]}

  user {env["OS_USERNAME"]}, password {env["OS_PASSWORD"]}, project {env["OS_PROJECT_NAME"]}
  credentials of all clients:  source {places.env}
  log:                         {places.log}
  stop:                        make demo-stop
"""
