"""Administrators and readers by the roles in the current token (spec/skyline.md 2.7)."""

from __future__ import annotations

from trimaran.config.console import OpenStack
from trimaran.identity import Token


def is_admin(token: Token, options: OpenStack) -> bool:
    """Whether the caller sees and changes everything."""
    return not set(options.system_admin_roles).isdisjoint(token.roles)


def sees_all(token: Token, options: OpenStack) -> bool:
    """Whether the caller sees what belongs to other projects: an administrator or a reader."""
    return is_admin(token, options) or not set(options.system_reader_roles).isdisjoint(token.roles)
