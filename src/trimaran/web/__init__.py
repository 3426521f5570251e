"""What every HTTP daemon needs, once: stages, errors, health, metrics, the server.

A hull calls ``create_app``, adds its routes and gives one renderer of errors;
the command line hands the application to ``trimaran.web.server``.
"""

from __future__ import annotations

from trimaran.web.app import create_app
from trimaran.web.context import name_operation, request_id
from trimaran.web.limits import HeadersTooLarge, UriTooLong
from trimaran.web.proxy import remote_address

__all__ = [
    "HeadersTooLarge",
    "UriTooLong",
    "create_app",
    "name_operation",
    "remote_address",
    "request_id",
]
