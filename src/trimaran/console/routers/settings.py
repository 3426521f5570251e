"""Settings that administrators change in the console (spec/skyline.md 1.9).

A row in the database wins over the option of the same name; rows of keys that
are no settings (any more) are left alone and not shown.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException

from trimaran.console import roles
from trimaran.console.caller import Caller, CurrentCaller
from trimaran.console.parts import CurrentParts, Parts
from trimaran.console.schemas.common import Detail, Unauthorized
from trimaran.console.schemas.settings import Setting, Settings, UpdateSetting
from trimaran.db.queries import console as queries

router = APIRouter(
    tags=["Setting"], responses={401: {"model": Unauthorized}, 403: {"model": Detail}}
)


@router.get("/settings", response_model=Settings, summary="All settings")
def list_settings(caller: CurrentCaller, parts: CurrentParts) -> Settings:
    """Returns all settings in the order of the option ``base_settings``."""
    changed = parts.db.read(queries.list_settings)
    return Settings(
        settings=[
            Setting(key=key, value=changed[key] if key in changed else _default(parts, key))
            for key in parts.settings.setting.base_settings
        ]
    )


@router.get(
    "/setting/{key}",
    response_model=Setting,
    responses={404: {"model": Detail}},
    summary="One setting",
)
def show_setting(key: str, caller: CurrentCaller, parts: CurrentParts) -> Setting:
    """Returns one setting."""
    _check_key(parts, key)
    row = parts.db.read(lambda session: _row(queries.get_setting(session, key)))
    return Setting(key=key, value=row[0] if row else _default(parts, key))


@router.put(
    "/setting",
    response_model=Setting,
    responses={404: {"model": Detail}},
    summary="Change a setting",
)
def update_setting(setting: UpdateSetting, caller: CurrentCaller, parts: CurrentParts) -> Setting:
    """Changes a setting for everybody."""
    _check_role(parts, caller, "Not allowed to update settings.")
    _check_key(parts, setting.key)
    parts.db.write(lambda session: queries.set_setting(session, setting.key, setting.value))
    return Setting(key=setting.key, value=setting.value)


@router.delete(
    "/setting/{key}",
    response_model=Setting,
    responses={404: {"model": Detail}},
    summary="Reset a setting",
)
def reset_setting(key: str, caller: CurrentCaller, parts: CurrentParts) -> Setting:
    """Gives a setting the value of its option again."""
    _check_role(parts, caller, "Not allowed to reset settings.")
    _check_key(parts, key)
    parts.db.write(lambda session: queries.reset_setting(session, key))
    return Setting(key=key, value=_default(parts, key))


def _check_role(parts: Parts, caller: Caller, refusal: str) -> None:
    if not roles.is_admin(caller.token, parts.settings.openstack):
        raise HTTPException(403, refusal)


def _check_key(parts: Parts, key: str) -> None:
    if key not in parts.settings.setting.base_settings:
        raise HTTPException(404, "Not a valid setting key.")


def _row(found: Any) -> tuple[Any] | None:
    # A row may hold null, which is not the same as no row.
    return None if found is None else (found.value,)


def _default(parts: Parts, key: str) -> Any:
    # Upstream fails for all settings when base_settings names one that has no option.
    return getattr(parts.settings.setting, key, None)
