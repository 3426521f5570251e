"""What requests to the console's API cost, side by side with skyline-apiserver 9.0.0.

    python benchmarks/console.py --peer VENV [--sandbox STATE] [--seconds 4] [--rounds 3]

VENV is an environment with ``skyline-apiserver==9.0.0 PyMySQL gunicorn``; without ``--peer`` ours
is measured alone.  Both have one worker process, a MariaDB database of their own and the same
Keystone, the sandbox's.  Calls to OpenStack are counted through gates (``console_peers``) in
processes of their own, which are gone when the timing begins.  Rounds alternate between the two,
so that a busy machine is so for both.

Prints the calls, the listings, and one table of the targets with their figures; writes a plot
(SVG) to ``--artifacts``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import console_plot
from console_figures import LOGGING_IN, Figures, Listing, targets
from console_gates import Gates
from console_load import Load, beside, drive, request
from console_peers import API, Bystander, Cloud, Peer
from console_played import Rows

CONNECTIONS = 8
USER = "demo"
CREDENTIAL = json.dumps(
    {"username": USER, "password": "password", "domain": "Default"}, separators=(",", ":")
).encode()
LISTINGS = ("servers", "volumes", "volume_snapshots", "ports", "compute-services")
REPEATS = 9
SIZES = (1, 10, 100)


def requests_of(cookies: list[str]) -> dict[str, list[bytes]]:
    """The requests that are timed, one for each connection."""
    own = [{"Cookie": f"session={cookie}"} for cookie in cookies]
    return {
        "profile": [request("GET", f"{API}/profile", each) for each in own],
        "policies": [request("GET", f"{API}/policies", each) for each in own],
        "login": [request("POST", f"{API}/login", body=CREDENTIAL)] * CONNECTIONS,
        "regions": [request("GET", f"{API}/contrib/regions")] * CONNECTIONS,
    }


def count(peer: Peer, gates: Gates, found: Figures) -> None:
    """Counts the calls of each request, warm, and takes the listings' times."""
    cookie = peer.login(USER)
    for path in ("/profile", "/policies", "/contrib/regions"):
        for _ in range(2):
            peer.call("GET", path, cookie=cookie)
    # What is fetched in the background every minute is no part of a request.
    time.sleep(1)
    gates.take()
    for name, path in (
        ("profile", "/profile"),
        ("policies", "/policies"),
        ("regions", "/contrib/regions"),
        ("settings", "/settings"),
    ):
        peer.call("GET", path, cookie=cookie)
        found.calls[name] = Counter(call.service for call in gates.take())
    peer.login(USER)
    found.calls["login"] = Counter(call.service for call in gates.take())
    admin = peer.login("admin")
    gates.play = Rows("0" * 32, SIZES[-1])
    for kind in LISTINGS:
        found.listings[kind] = listing(peer, gates, admin, kind)
    gates.play = lambda call: None


def listing(peer: Peer, gates: Gates, cookie: str, kind: str) -> Listing:
    """Asks for one listing of all projects, with one row and with many, again and again."""
    calls: dict[int, int] = {}
    times: list[float] = []
    over: list[float] = []
    limits = SIZES if kind != "compute-services" else (None,)
    for limit in limits:
        size = f"&limit={limit}" if limit else ""
        path = f"/extension/{kind}?all_projects=true{size}"
        times, over = [], []
        # Upstream makes two calls a row in some of them, and knows no warmth.
        repeats = range(-1, REPEATS) if peer.venv is None else range(1)
        for turn in repeats:
            gates.take()
            began = time.perf_counter()
            status, _, body = peer.call("GET", path, cookie=cookie)
            took = (time.perf_counter() - began) * 1000
            seen = gates.take()
            if status != 200:
                raise SystemExit(f"{peer.name}: {path}: {status} {body[:300]!r}")
            if turn >= 0:
                times.append(took)
                over.append(took - max(call.seconds for call in seen) * 1000)
        rows = json.loads(body)["services" if kind == "compute-services" else kind]
        calls[len(rows)] = len(seen)
    return Listing(calls, times, over)


def timed(
    peers: list[tuple[Peer, Figures]], bystander: Bystander, seconds: float, rounds: int
) -> None:
    """Times the requests under load, peer by peer in turns."""

    def begin(peer: Peer) -> None:
        peer.stall()
        bystander.stall()

    def note(peer: Peer, found: Figures, name: str) -> None:
        seen = (peer.stall(), bystander.stall())
        found.stalls[name] = max(found.stalls.get(name, (0.0, 0.0)), seen)

    asked = {peer.name: requests_of([peer.login(USER) for _ in range(CONNECTIONS)])
             for peer, _ in peers}  # fmt: skip
    for peer, _ in peers:
        for name, requests in asked[peer.name].items():
            if name != "login":
                asyncio.run(drive(peer.port, requests, 1.0))
    for _ in range(rounds):
        for name in ("profile", "policies", "login", "regions"):
            for peer, found in peers:
                begin(peer)
                load = asyncio.run(drive(peer.port, asked[peer.name][name], seconds))
                found.loads.setdefault(name, Load()).add(load)
                note(peer, found, name)
        config = request("GET", f"{API}/config")
        for peer, found in peers:
            begin(peer)
            logins = [asked[peer.name]["login"][0]] * LOGGING_IN
            own, _ = asyncio.run(beside(peer.port, logins, config, seconds))
            found.config.add(own)
            note(peer, found, "config beside logins")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="environment of skyline-apiserver 9.0.0")
    parser.add_argument("--sandbox", type=Path, default=os.environ.get("TRIMARAN_SANDBOX"))
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts/benchmarks"))
    options = parser.parse_args()
    cloud = Cloud.read(Path(options.sandbox or ".sandbox"))
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        run(options, cloud, Path(name), stack)


def run(
    options: argparse.Namespace, cloud: Cloud, folder: Path, stack: contextlib.ExitStack
) -> None:
    """One benchmark, whose parts end with the stack."""
    peers = [(Peer("ours"), Figures())]
    if options.peer:
        peers.insert(0, (Peer("skyline-apiserver 9.0.0", options.peer), Figures()))
    databases = {peer.name: stack.enter_context(cloud.database()) for peer, _ in peers}
    for peer, _ in peers:
        stack.callback(peer.stop)
    gates = Gates(cloud.services)
    stack.callback(gates.close)
    for peer, found in peers:
        peer.start(folder, gates.auth_url, databases[peer.name])
        count(peer, gates, found)
        peer.stop()
        print(f"{peer.name}:", {name: dict(made) for name, made in found.calls.items()}, flush=True)
    for peer, _ in peers:
        peer.start(folder, cloud.auth_url, databases[peer.name])
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    bystander = Bystander("idle")
    stack.callback(bystander.stop)
    bystander.begin()
    timed(peers, bystander, options.seconds, options.rounds)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    for peer, found in peers:
        failed = {name: dict(load.statuses) for name, load in found.loads.items() if load.failures}
        print(f"{peer.name}: answers that were no success: {failed or 'none'}")
    mine = peers[-1][1]
    theirs = peers[0][1] if len(peers) > 1 else None
    print("\n| target | skyline-apiserver 9.0.0 | ours | |\n|---|---|---|---|")
    for row in targets(mine, theirs):
        print(f"| {' | '.join(row)} |")
    plot = options.artifacts / "console.svg"
    plot.parent.mkdir(parents=True, exist_ok=True)
    series = {peer.name: found.loads for peer, found in peers}
    plot.write_text(console_plot.draw(series))
    print(f"\nplot: {plot}")


if __name__ == "__main__":
    main()
