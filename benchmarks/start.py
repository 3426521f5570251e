"""How long daemons take to be ready, and how much memory they hold.

    python benchmarks/start.py --config-dir .demo/etc [--runs 3]

Starts each daemon alone on a free port with the configuration of a demo, and
``trimaran serve all`` on the usual ports (they must be free: run
``make demo-stop`` first, and ``trimaran sandbox up`` so that Keystone answers).
Prints, for each, the seconds until the health check answers (median, and the
range) and the resident memory of all its processes one second later.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

#: daemon: (file, section, option of the address's port); None: given on the command line
DAEMONS: dict[str, tuple[str, str, str] | None] = {
    "console": None,
    "ec2-api": ("ec2api.conf", "DEFAULT", "ec2api_listen_port"),
    "ec2-metadata": ("ec2api.conf", "DEFAULT", "metadata_listen_port"),
    "ec2-s3": ("ec2api.conf", "DEFAULT", "s3_listen_port"),
    "magnum-api": ("magnum.conf", "api", "port"),
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(daemon: str, etc: Path, port: int, scratch: Path) -> list[str]:
    base = [sys.executable, "-m", "trimaran", daemon]
    place = DAEMONS[daemon]
    if place is None:
        return [*base, "--config", str(etc / "skyline.yaml"), "--port", str(port), "--workers", "1"]
    name, section, option = place
    extra = scratch / f"{daemon}.conf"
    extra.write_text(f"[{section}]\n{option} = {port}\n[trimaran]\nworkers = 1\n")
    return [*base, "--config-file", str(etc / name), "--config-file", str(extra)]


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def measure(words: list[str], ports: list[int], env: dict[str, str]) -> tuple[float, float]:
    """Seconds until all ports answer, and MiB one second later."""
    begin = time.monotonic()
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not all(answers(port) for port in ports):
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
            time.sleep(0.02)
        seconds = time.monotonic() - begin
        time.sleep(1)
        parent = psutil.Process(process.pid)
        family = [parent, *parent.children(recursive=True)]
        return seconds, sum(each.memory_info().rss for each in family) / 2**20
    finally:
        process.terminate()
        process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config-dir", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    etc: Path = arguments.config_dir.absolute()
    scratch = Path(tempfile.mkdtemp(prefix="trimaran-start-"))
    env = {**os.environ, "MAGNUM_SANDBOX_DIR": str(scratch), "MALLOC_ARENA_MAX": "2"}
    print(f"{'daemon':<16} {'ready s':>8} {'min':>6} {'max':>6} {'RSS MiB':>8}")
    try:
        for daemon in [*DAEMONS, "serve all"]:
            seen = []
            for _ in range(arguments.runs):
                if daemon == "serve all":
                    words = [sys.executable, "-m", "trimaran", "serve", "all"]
                    words += ["--config-dir", str(etc)]
                    ports = [9998, 8788, 8789, 3334, 9511]
                else:
                    ports = [free_port()]
                    words = command(daemon, etc, ports[0], scratch)
                seen.append(measure(words, ports, env))
            times = [seconds for seconds, _ in seen]
            print(
                f"{daemon:<16} {statistics.median(times):8.2f} {min(times):6.2f} {max(times):6.2f}"
                f" {max(size for _, size in seen):8.0f}"
            )
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
