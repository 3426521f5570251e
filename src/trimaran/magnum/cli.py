"""The commands that deployment tools call by upstream's names (spec section 9).

``magnum-api``, ``magnum-conductor``, ``magnum-db-manage``, ``magnum-status`` and
``magnum-driver-manage`` take upstream's arguments; what cannot be used ends
with one sentence and exit code 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trimaran.config import common, logs
from trimaran.config import magnum as options
from trimaran.errors import ConfigError, Unavailable

Command = Callable[[Sequence[str]], int]


def _told(run: Command, argv: Sequence[str] | None) -> int:
    """Runs a command and tells what its configuration lacks."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except (ConfigError, Unavailable) as error:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: {error}\n")
        return 1


def _files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config-file", action="append", default=[], dest="files")
    parser.add_argument("--config-dir", action="append", default=[], dest="dirs")


def _conf(arguments: argparse.Namespace) -> Any:
    return options.load(arguments.files, arguments.dirs)


def api(argv: Sequence[str] | None = None) -> int:
    """``magnum-api``: serves the API; takes oslo.config's arguments."""

    def run(arguments: Sequence[str]) -> int:
        from trimaran.magnum.api import app
        from trimaran.web import server

        conf = options.load(args=arguments)
        own = common.own(conf)
        logs.setup(conf, "magnum-api")
        ssl = None
        if conf.api.enabled_ssl:
            ssl = {"certfile": conf.api.ssl_cert_file, "keyfile": conf.api.ssl_key_file}
        server.run(
            lambda: app.build(options.load(args=arguments)),
            host=str(conf.api.host),
            port=conf.api.port,
            workers=conf.api.workers or own.workers,
            own=own,
            name="magnum-api",
            ssl=ssl,
        )
        return 0

    return _told(run, argv)


def conductor(argv: Sequence[str] | None = None) -> int:
    """``magnum-conductor``: runs a conductor until SIGTERM."""

    def run(arguments: Sequence[str]) -> int:
        from trimaran.magnum.conductor import service

        conf = options.load(args=arguments)
        logs.setup(conf, "magnum-conductor")
        service.run(conf)
        return 0

    return _told(run, argv)


def db_manage(argv: Sequence[str] | None = None) -> int:
    """``magnum-db-manage``: version, upgrade.

    ``stamp`` and ``revision`` are upstream's developers' tools; an existing
    database is taken over by ``upgrade``.
    """
    parser = argparse.ArgumentParser(prog="magnum-db-manage")
    _files(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="print the revisions of the database")
    upgrade = commands.add_parser("upgrade", help="bring the database to this release's schema")
    upgrade.add_argument("revision", nargs="?", default="head", choices=["head", "heads"])

    def run(arguments: Sequence[str]) -> int:
        from trimaran.db import migrate

        parsed = parser.parse_args(arguments)
        url = _conf(parsed).database.connection
        if not url:
            raise ConfigError("[database] connection must be set.")
        if parsed.command == "upgrade":
            migrate.upgrade(url, "magnum")
        else:
            revisions = ", ".join(migrate.current(url)) or "None"
            sys.stdout.write(f"Current DB revision is {revisions}\n")
        return 0

    return _told(run, argv)


def status(argv: Sequence[str] | None = None) -> int:
    """``magnum-status upgrade check``: 0 all is well, 1 a warning, 2 a failure."""
    parser = argparse.ArgumentParser(prog="magnum-status")
    _files(parser)
    parser.add_argument("category", choices=["upgrade"])
    parser.add_argument("command", choices=["check"])

    def run(arguments: Sequence[str]) -> int:
        conf = _conf(parser.parse_args(arguments))
        checks = {"Policy File JSON to YAML Migration": _policy(conf), "Database": _database(conf)}
        for name, (code, text) in checks.items():
            result = ("Success", "Warning", "Failure")[code]
            sys.stdout.write(f"Check: {name}\nResult: {result}\nDetails: {text or 'None'}\n\n")
        return max(code for code, _ in checks.values())

    return _told(run, argv)


def _policy(conf: Any) -> tuple[int, str]:
    name = conf.oslo_policy.policy_file or ""
    if name.endswith(".json"):
        return 2, f"{name} is JSON: convert it with oslopolicy-convert-json-to-yaml."
    return 0, ""


def _database(conf: Any) -> tuple[int, str]:
    from trimaran.db import migrate

    found = migrate.check(conf.database.connection, "magnum")
    if found.ok:
        return 0, ""
    # Migrations only expand: a newer schema serves this release as well.
    return (1 if found.newer else 2), found.text


def driver_manage(argv: Sequence[str] | None = None) -> int:
    """``magnum-driver-manage list-drivers``: which cluster drivers may be used."""
    parser = argparse.ArgumentParser(prog="magnum-driver-manage")
    _files(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list-drivers", help="list the drivers that may be used")
    listing.add_argument("-d", "--details", action="store_true", help="also what they provide")
    listing.add_argument("-p", "--paths", action="store_true", help="also their templates")

    def run(arguments: Sequence[str]) -> int:
        from trimaran.magnum.drivers.lookup import Drivers

        parsed = parser.parse_args(arguments)
        drivers = Drivers(_conf(parsed))
        titles = ["Name"]
        if parsed.details:
            titles += ["Server_Type", "OS", "COE"]
        if parsed.paths:
            titles.append("Template Path")
        rows = [titles]
        for name in drivers.names():
            for kind in drivers.get(None, None, None, name=name).provides:
                row = [name, kind["server_type"], kind["os"], kind["coe"]]
                rows.append((row if parsed.details else row[:1]) + ["n/a"] * parsed.paths)
        widths = [max(len(row[column]) for row in rows) for column in range(len(titles))]
        for line in dict.fromkeys(map(tuple, rows)):
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")
        return 0

    return _told(run, argv)
