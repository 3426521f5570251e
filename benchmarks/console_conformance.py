"""The conformance table of the console (spec/skyline.md 9), of upstream and ours side by side.

    python benchmarks/console_conformance.py --peer VENV [--sandbox STATE] [--output FILE]

VENV is an environment with ``skyline-apiserver==9.0.0 PyMySQL gunicorn``; without ``--peer`` only
ours is asked.  Both run here, against the sandbox's Keystone and services, each with a database
of its own; people and projects are made for the run and removed.  Calls pass through gates, so
that rows about what the services are asked can be told, and so that Nova can have a server in the
recycle bin.  Ends with 1 when ours differs from what a row expects.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml

from console_gates import Gates
from console_peers import Cloud, Peer
from console_rows import ROWS, Row
from console_world import People, Prometheus, World

HEAD = """# The conformance table, upstream and ours

Made by `python benchmarks/console_conformance.py --peer VENV --output docs/console-conformance.md`
with skyline-apiserver 9.0.0 and the sandbox's Keystone, Nova, Neutron, Cinder and Glance. A is
nobody, D a member, M an administrator; paths are below `/api/v1`. The rows are those of the
specification's section 9.

† Keystone's second factor is played in front of a real Keystone, which has it only when told so.
‡ The rows of the service are played in front of the real one.

"intended" is where ours differs on purpose ([console.md](console.md#differences-from-upstream)):
a fault of upstream's that is mended, today's rules of the services, one tree of migrations for
three services.

| # | request | skyline-apiserver 9.0.0 | ours | |
|---|---|---|---|---|
"""
VARIANT: dict[str, dict[str, Any]] = {
    "default": {"secure_proxy_addr_header": "X-Real-IP", "ssl_enabled": False},
    "openstack": {
        "sso_enabled": True,
        "sso_identity_providers": [{"name": "okta", "protocol": "openid", "label": "Okta"}],
    },
}


def look(
    peer: Peer,
    rows: list[Row],
    cloud: Cloud,
    gates: Gates,
    people: People,
    prometheus: Prometheus,
    folder: Path,
) -> dict[int, str]:
    """Asks one console for rows."""
    seen: dict[int, str] = {}
    with cloud.database() as database:
        world = World(peer, gates, people, cloud, database, folder)
        base = {"default": {"prometheus_endpoint": prometheus.url}}
        for variant in (False, True):
            asked = [row for row in rows if row.variant == variant]
            if not asked:
                continue
            peer.start(folder, gates.auth_url, database, VARIANT if variant else base)
            try:
                world.renew_sessions()
                for row in asked:
                    seen[row.number] = _seen(row, world)
            finally:
                peer.stop()
    return seen


def _seen(row: Row, world: World) -> str:
    try:
        return row.see(world)
    except Exception as failure:
        return f"{type(failure).__name__}: {failure}"[:200]


def nginx(peer: Peer, cloud: Cloud, folder: Path) -> str:
    """Row 53: the generator's locations."""
    place = folder / f"nginx-{peer.name.partition(' ')[0]}"
    place.mkdir()
    (place / "skyline_console.py").write_text('static_path = "/srv/console"\n')
    options = {
        "default": {"log_dir": str(place)},
        "openstack": {
            "keystone_url": f"{cloud.auth_url}/",
            "system_user_password": "password",
            "system_user_name": "skyline",
        },
    }
    (place / "skyline.yaml").write_text(yaml.safe_dump(options))
    scripts = peer.venv / "bin" if peer.venv else Path(sys.executable).parent
    env = {**os.environ, "OS_CONFIG_DIR": str(place), "PYTHONPATH": str(place)}
    done = subprocess.run(
        [scripts / "skyline-nginx-generator"], env=env, capture_output=True, text=True, check=False
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {words[1] for words in lines if words[:1] == ["location"]}
    # Others may be in the catalog too, for a while.
    services = [name for name in SERVICES if f"/api/openstack/regionone/{name}/" in found]
    nova = cloud.services["nova"]
    bare = any(words == ["proxy_pass", f"{nova}/;"] for words in lines)
    return f"exit {done.returncode}; {', '.join(services)}; nova's path {'/' if bare else 'kept'}"


def migration(peer: Peer, folder: Path) -> str:
    """Row 54: an empty database."""
    file = folder / f"empty-{peer.name.partition(' ')[0]}.sqlite"
    url = f"sqlite:///{file}"
    if peer.venv:
        place = folder / "migrate"
        place.mkdir()
        (place / "skyline.yaml").write_text(yaml.safe_dump({"default": {"database_url": url}}))
        (package,) = peer.venv.glob("lib/python3*/site-packages/skyline_apiserver")
        words = [str(peer.venv / "bin/alembic"), "-c", "skyline_apiserver/db/alembic/alembic.ini"]
        env = {**os.environ, "OS_CONFIG_DIR": str(place), "PYTHONPATH": str(package.parent)}
        done = subprocess.run(
            [*words, "upgrade", "head"], cwd=package.parent, env=env, capture_output=True, text=True
        )
    else:
        words = [sys.executable, "-m", "trimaran", "db", "upgrade", "console", "--url", url]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip().splitlines()[-1]}"
    engine = sa.create_engine(url)
    described = sa.inspect(engine)
    keys = [
        f"{name}({', '.join(described.get_pk_constraint(name)['constrained_columns'])})"
        for name in ("revoked_token", "settings")
    ]
    where = [name for name in described.get_table_names() if name.endswith("_version")]
    with engine.connect() as connection:
        at = connection.scalars(sa.text(f"SELECT version_num FROM {where[0]}")).all()
    engine.dispose()
    return f"{', '.join(keys)}; {where[0]} {'001' if '001' in at else 'of ours'}"


NGINX, MIGRATION = 53, 54
SERVICES = ("barbican", "cinder", "glance", "keystone", "neutron", "nova", "placement")
KEYS = "revoked_token(uuid), settings(key)"
EXTRA = tuple(
    Row(number, request, want, upstream, False, lambda world: "")
    for number, request, want, upstream in (
        (NGINX, "skyline-nginx-generator", f"exit 0; {', '.join(SERVICES)}; nova's path /", ""),
        # One tree of revisions for three services; upstream's table is left as it is found.
        (
            MIGRATION,
            "migration of an empty database",
            f"{KEYS}; trimaran_version of ours",
            f"{KEYS}; alembic_version 001",
        ),
    )
)


def verdict(row: Row, theirs: str | None, ours: str) -> str:
    """What the two columns come to."""
    if ours != row.want:
        return f"**differs**: {row.want}"
    if theirs is None:
        return "as specified"
    if theirs == ours:
        return "same"
    if row.upstream and theirs == row.upstream:
        return "intended"
    return "as specified; upstream is not"


@contextlib.contextmanager
def fixture(cloud: Cloud) -> Iterator[tuple[Gates, People, Prometheus, Path]]:
    """What both consoles stand on."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        people = People(cloud)
        stack.callback(people.remove)
        people.make()
        gates = Gates(cloud.services)
        stack.callback(gates.close)
        prometheus = Prometheus(people.projects["demo2"])
        stack.callback(prometheus.close)
        yield gates, people, prometheus, Path(name)


def main() -> None:
    """Asks, prints and writes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="environment of skyline-apiserver 9.0.0")
    parser.add_argument("--sandbox", type=Path, default=os.environ.get("TRIMARAN_SANDBOX"))
    parser.add_argument("--output", type=Path, help="file to write the table to")
    parser.add_argument("--only", type=int, nargs="*", metavar="ROW", help="numbers of rows")
    options = parser.parse_args()
    cloud = Cloud.read(Path(options.sandbox or ".sandbox"))
    rows = [row for row in (*ROWS, *EXTRA) if not options.only or row.number in options.only]
    found: dict[str, dict[int, str]] = {"upstream": {}, "ours": {}}
    peers = [Peer("ours"), *([Peer("upstream", options.peer)] if options.peer else [])]
    with fixture(cloud) as (gates, people, prometheus, folder):
        for peer in peers:
            asked = [row for row in rows if row in ROWS]
            seen = look(peer, asked, cloud, gates, people, prometheus, folder)
            for row in rows:
                if row.number == NGINX:
                    seen[row.number] = nginx(peer, cloud, folder)
                elif row.number == MIGRATION:
                    seen[row.number] = migration(peer, folder)
            found[peer.name] = seen
    theirs, ours = found["upstream"], found["ours"]
    lines, wrong = [], 0
    for row in rows:
        said = verdict(row, theirs.get(row.number), ours[row.number])
        wrong += said.startswith("**")
        cells = (row.number, row.request, theirs.get(row.number, "not asked"), ours[row.number])
        shown = " | ".join(str(cell).replace("|", "\\|") for cell in (*cells, said))
        lines.append(f"| {shown} |")
    print("\n".join(lines))
    print(f"\n{len(lines)} rows, {wrong} of ours not as specified")
    if options.output:
        options.output.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
