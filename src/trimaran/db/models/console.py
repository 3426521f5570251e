"""The console's two tables, as Skyline has them (spec/skyline.md section 3)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from trimaran.db.models.base import MYSQL_TABLE, Base, NativeJSON


class RevokedToken(Base):
    """A console token that was logged out before its end.

    Attributes:
        uuid: the token's uuid claim.
        expire: Unix seconds of the token's own end; the row is of no use after it.
    """

    __tablename__ = "revoked_token"
    __table_args__ = (Index("ix_revoked_token_expire", "expire"), MYSQL_TABLE)

    uuid: Mapped[str] = mapped_column(String(128), primary_key=True)
    expire: Mapped[int] = mapped_column(Integer)


class Setting(Base):
    """A setting that an administrator has changed from its configured value."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    value: Mapped[Any | None] = mapped_column(NativeJSON, nullable=True)
