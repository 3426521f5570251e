"""Where the servers are that tests use: the environment says, else the sandbox, else the usual
place."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

STATE = Path(os.environ.get("TRIMARAN_SANDBOX", Path(__file__).parents[2] / ".sandbox")).absolute()


def _server_url(kind: str, default: str) -> str:
    said = os.environ.get(f"TRIMARAN_TEST_{kind.upper()}_URL")
    with contextlib.suppress(FileNotFoundError):
        said = said or json.loads((STATE / "sandbox.json").read_text()).get(f"{kind}_url")
    return said or default


MYSQL_URL = _server_url("mysql", "mysql+pymysql://root@127.0.0.1:3306/")
POSTGRESQL_URL = _server_url(
    "postgresql", "postgresql+psycopg://trimaran:trimaran@127.0.0.1:5432/trimaran"
)
AMQP_URL = _server_url("amqp", "rabbit://guest:guest@127.0.0.1:5672/")
