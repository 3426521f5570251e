"""Each service's own migrations: what is run where no schema is kept."""

from __future__ import annotations

from trimaran.sandbox.places import LIB
from trimaran.sandbox.processes import Processes
from trimaran.sandbox.services import service_environment
from trimaran.sandbox.settings import PASSWORD, REGION, Settings
from trimaran.sandbox.venv import Environment


def migrate(service: str, settings: Settings, processes: Processes, venv: Environment) -> None:
    """Run a service's own migrations on its databases."""
    conf = ["--config-file", str(settings.config_file(service))]
    env = service_environment(settings, venv, service)
    keystone = [venv.bin("keystone-manage"), *conf]
    commands: dict[str, list[list[str]]] = {
        "keystone": [
            [*keystone, "db_sync"],
            [
                *keystone,
                "bootstrap",
                "--bootstrap-password",
                PASSWORD,
                *(
                    word
                    for kind in ("admin", "internal", "public")
                    for word in (f"--bootstrap-{kind}-url", settings.auth_url)
                ),
                "--bootstrap-region-id",
                REGION,
            ],
        ],
        "glance": [
            [venv.bin("glance-manage"), *conf, "db_sync"],
            [
                venv.bin("glance-manage"),
                *conf,
                "db_load_metadefs",
                str(venv.etc("glance", "metadefs")),
            ],
        ],
        "placement": [[venv.bin("placement-manage"), *conf, "db", "sync"]],
        "neutron": [[venv.bin("neutron-db-manage"), *conf, "upgrade", "heads"]],
        "cinder": [[venv.bin("cinder-manage"), *conf, "db", "sync"]],
        "nova": [
            [
                str(venv.python),
                str(LIB / "nova_setup.py"),
                str(settings.config_file("nova")),
                settings.database_url("nova_cell0"),
            ]
        ],
        "barbican": [
            [
                venv.bin("barbican-manage"),
                "db",
                "upgrade",
                "--db-url",
                settings.database_url("barbican"),
            ]
        ],
    }
    for command in commands[service]:
        processes.run(service, command, env)
