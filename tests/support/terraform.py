"""Terraform with its AWS provider, pointed at a daemon of ours, and what it asks for on the way.

The provider is found where Terraform itself looks for plugins, or in the
directory that ``TRIMARAN_TERRAFORM_PLUGINS`` names.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

#: One directory a theme, with a ``main.tf`` whose variable ``step`` is 1 or 2.
THEMES = Path(__file__).parents[1] / "e2e" / "terraform"
PATIENCE = 1200

_ROOT = """
terraform {{
  required_providers {{
    aws = {{ source = "hashicorp/aws" }}
  }}
}}
variable "step" {{}}
provider "aws" {{
  region                  = "RegionOne"
  access_key              = "{access}"
  secret_key              = "{secret}"
  skip_region_validation  = true
  skip_metadata_api_check = true
  endpoints {{
    ec2 = "{url}"
    sts = "{url}"
  }}
}}
"""
_MODULE = """
module "{name}" {{
  source = "{path}"
  step   = var.step
}}
"""


def themes() -> list[str]:
    """The names of all themes."""
    return sorted(path.parent.name for path in THEMES.glob("*/main.tf"))


class Terraform:
    """A working directory with some themes as modules.

    Args:
        home: an empty directory.
        url: where the API listens.
        keys: EC2 credentials.
        names: of the themes.
    """

    def __init__(self, home: Path, url: str, keys: tuple[str, str], names: list[str]) -> None:
        self._home = home
        (home / "empty.tfrc").touch()
        root = _ROOT.format(url=url, access=keys[0], secret=keys[1])
        modules = [_MODULE.format(name=name, path=THEMES / name) for name in names]
        (home / "main.tf").write_text(root + "".join(modules))

    @staticmethod
    def is_here() -> bool:
        """Whether there is a binary."""
        return shutil.which("terraform") is not None

    def init(self) -> str:
        """Finds the provider; returns what went wrong, or ""."""
        plugins = os.environ.get("TRIMARAN_TERRAFORM_PLUGINS")
        options = [f"-plugin-dir={plugins}"] if plugins else []
        done = self._run("init", *options)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def apply(self, step: int, *options: str) -> list[dict[str, Any]]:
        """Makes the world as a step wants it; returns Terraform's events."""
        return self._changed("apply", "-auto-approve", "-json", f"-var=step={step}", *options)

    def destroy(self, step: int, *options: str) -> list[dict[str, Any]]:
        """Removes everything; returns Terraform's events."""
        return self._changed("destroy", "-auto-approve", "-json", f"-var=step={step}", *options)

    def refresh(self, step: int, *options: str) -> list[dict[str, Any]]:
        """Only reads everything; returns Terraform's events."""
        return self._changed("plan", "-json", f"-var=step={step}", *options)

    def differences(self, step: int) -> str:
        """What a plan would change; "" when the world is as it is wanted."""
        done = self._run("plan", "-detailed-exitcode", "-no-color", f"-var=step={step}")
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def _changed(self, *arguments: str) -> list[dict[str, Any]]:
        done = self._run(*arguments)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        words = [event["@message"] for event in events if event.get("@level") == "error"]
        details = [str(event.get("diagnostic", {}).get("detail", "")) for event in events]
        assert done.returncode == 0, (words, details, done.stderr)
        return events

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        config = str(self._home / "empty.tfrc")
        return subprocess.run(
            ["terraform", *arguments],
            cwd=self._home,
            env={**os.environ, "TF_CLI_CONFIG_FILE": config, "TF_IN_AUTOMATION": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@dataclass(frozen=True)
class Call:
    """One call of the provider, and what it was answered."""

    at: datetime
    parameters: dict[str, str]
    status: int
    body: bytes


@contextmanager
def listening(url: str) -> Iterator[tuple[str, list[Call]]]:
    """Stands before a daemon and notes what goes through: (its own URL, the calls so far)."""
    calls: list[Call] = []
    behind = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            return

        def do_POST(self) -> None:
            at = datetime.now(UTC)
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            daemon = http.client.HTTPConnection(behind, timeout=PATIENCE)
            # The signature covers the host that the client meant, which is ours.
            daemon.putrequest("POST", self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "connection":
                    daemon.putheader(name, value)
            daemon.endheaders(sent)
            answer = daemon.getresponse()
            body = answer.read()
            parameters = dict(parse_qsl(sent.decode(), keep_blank_values=True))
            calls.append(Call(at, parameters, answer.status, body))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["content-type"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
