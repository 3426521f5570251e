"""Second factor and single sign-on (spec/skyline.md 1.4)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints


class TotpCredential(BaseModel):
    """Body of the second step of a login."""

    username: str
    passcode: Annotated[str, StringConstraints(pattern=r"^[0-9]{6}$")]
    receipt: str
    domain: str | None = None
    region: str | None = None


class SsoProtocol(BaseModel):
    """One way to sign on; ``label`` is for the button, null for a plain protocol."""

    protocol: str
    url: str
    label: str | None = None


class Sso(BaseModel):
    """What the login page offers beside the password."""

    enable_sso: bool
    protocols: list[SsoProtocol]
