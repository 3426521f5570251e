"""The Magnum API on a cloud that answers without sockets.

Everything that is ours is real: identity, cloud clients, policy, database
(SQLite).  Keystone, Nova, Glance and Neutron are answers of requests-mock, and
the conductor is a list of the messages that it would have got.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import requests_mock
from fastapi.testclient import TestClient

from trimaran.config import magnum as options
from trimaran.db.models.base import Base
from trimaran.magnum.api import app, parts
from trimaran.magnum.drivers.base import Driver
from trimaran.magnum.drivers.lookup import Drivers

KEYSTONE = "http://keystone.test/v3"
LATEST = {"OpenStack-API-Version": "container-infra latest"}
#: token → (user, project or None for the system, roles)
PEOPLE: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "t-member": ("u1", "p1", ("member", "reader")),
    "t-colleague": ("u1b", "p1", ("member", "reader")),
    "t-reader": ("u1r", "p1", ("reader",)),
    "t-other": ("u2", "p2", ("member", "reader")),
    "t-admin": ("ua", "pa", ("admin", "manager", "member", "reader")),
    "t-system": ("us", None, ("admin", "manager", "member", "reader")),
    "t-system-reader": ("usr", None, ("reader",)),
}
IMAGES = [
    {"id": "11111111-1111-4111-8111-111111111111", "name": "ub", "os_distro": "ubuntu"},
    {"id": "11111111-1111-4111-8111-111111111112", "name": "noos"},
    {"id": "11111111-1111-4111-8111-111111111113", "name": "twice", "os_distro": "ubuntu"},
    {"id": "11111111-1111-4111-8111-111111111114", "name": "twice", "os_distro": "ubuntu"},
    {"id": "11111111-1111-4111-8111-111111111115", "name": "fc", "os_distro": "fedora-coreos"},
    {"id": "11111111-1111-4111-8111-111111111116", "name": "exotic", "os_distro": "plan9"},
]
FLAVORS = [
    {"id": "f1", "name": "m1", "disk": 10},
    {"id": "f0", "name": "m0", "disk": 0},
]
NETWORKS = [
    {"id": "net-ext", "name": "ext", "router:external": True},
    {"id": "net-dup1", "name": "dup", "router:external": True},
    {"id": "net-dup2", "name": "dup", "router:external": True},
    {"id": "net-priv", "name": "priv", "router:external": False},
]
SUBNETS = [
    {"id": "sub-1", "name": "subnet"},
    {"id": "sub-dup1", "name": "dup"},
    {"id": "sub-dup2", "name": "dup"},
]


class Conductor:
    """Stands in for the RPC client: keeps what was cast, answers what it was told to."""

    def __init__(self) -> None:
        self.casts: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def cast(*args: Any, **kwargs: Any) -> Any:
            self.casts.append((name, args, kwargs))
            answer = self.answers.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return cast

    def names(self) -> list[str]:
        """The methods cast, in order."""
        return [name for name, _, _ in self.casts]

    def ping(self) -> None:
        """The broker is there."""

    def close(self) -> None:
        """Nothing is held."""


def _driver(os: str, beta: bool = False) -> type[Driver]:
    """A driver that provides one type and does nothing."""
    kind = {"server_type": "vm", "os": os, "coe": "kubernetes"}
    members: dict[str, Any] = dict.fromkeys(Driver.__abstractmethods__)
    members |= {"provides": [kind], "beta": beta}
    return type(f"{os.title()}Driver", (Driver,), members)


class SomeDrivers(Drivers):
    """Drivers of this module instead of those that are installed."""

    def _load(self) -> dict[str, type[Driver]]:
        return {
            "a_fcos": _driver("fedora-coreos"),
            "b_beta": _driver("debian", beta=True),
            "c_other": _driver("rocky"),
            "sandbox_ubuntu": _driver("ubuntu"),
        }


def token_body(token: str) -> dict[str, Any]:
    """What Keystone says about one of the people's tokens."""
    user, project, roles = PEOPLE[token]
    catalog = [
        {"type": kind, "name": kind, "id": kind, "endpoints": [_endpoint(kind)]}
        for kind in ("compute", "image", "network", "identity", "key-manager", "volumev3")
    ]
    return {
        "token": {
            "methods": ["password"],
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "user": {"id": user, "name": f"{user}-name", "domain": {"id": "d", "name": "Default"}},
            **_scope(project),
            "roles": [{"id": f"id-{role}", "name": role} for role in roles],
            "catalog": catalog,
        }
    }


def _scope(project: str | None) -> dict[str, Any]:
    if project is None:
        return {"system": {"all": True}}
    domain = {"id": "d", "name": "Default"}
    return {"project": {"id": project, "name": f"{project}-name", "domain": domain}}


def _endpoint(kind: str) -> dict[str, str]:
    url = KEYSTONE if kind == "identity" else f"http://{kind}.test"
    return {
        "id": kind,
        "interface": "public",
        "region": "RegionOne",
        "region_id": "RegionOne",
        "url": url,
    }


class World:
    """One API with a cloud around it.

    Args:
        folder: where the database and the configuration file go.
        settings: further lines of ``magnum.conf``.
        database: URL of a migrated database; None makes one of SQLite.
    """

    def __init__(self, folder: Path, settings: str = "", database: str | None = None) -> None:
        self.made = database is None
        database = database or f"sqlite:///{folder}/magnum.sqlite"
        file = folder / "magnum.conf"
        file.write_text(
            "[DEFAULT]\ntransport_url = fake://\n"
            f"[database]\nconnection = {database}\n"
            f"[keystone_authtoken]\nauth_url = {KEYSTONE}\nauth_type = password\n"
            "username = magnum\npassword = not-told\nproject_name = service\n"
            "user_domain_name = Default\nproject_domain_name = Default\n"
            f"www_authenticate_uri = {KEYSTONE}\n{settings}"
        )
        self.conf = options.load([str(file)])
        self.conductor = Conductor()
        self.cloud = requests_mock.Mocker()
        self.asked: list[str] = []
        self.images = [dict(item) for item in IMAGES]
        self.flavors = [dict(item) for item in FLAVORS]

    def __enter__(self) -> World:
        self.cloud.start()
        self._mock()
        built = parts.build(self.conf)
        built.conductor.close()
        self.parts = replace(
            built,
            conductor=self.conductor,  # type: ignore[arg-type]
            drivers=SomeDrivers(self.conf),
        )
        if self.made:
            Base.metadata.create_all(self.parts.db.engine)
        self.app = app.assemble(self.conf, self.parts)
        self.client = TestClient(self.app, base_url="http://magnum.test:9511")
        self.client.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.__exit__(kind, error, trace)
        self.cloud.stop()

    def call(self, method: str, path: str, who: str | None = "t-member", **kwargs: Any) -> Any:
        """One request; the newest microversion unless headers say otherwise.

        Args:
            method: HTTP method.
            path: path and query.
            who: token; None sends none.
            kwargs: of the test client; ``headers`` replace the version header.
        """
        headers = dict(kwargs.pop("headers", LATEST))
        if who is not None:
            headers["X-Auth-Token"] = who
        return self.client.request(method, path, headers=headers, **kwargs)

    def template(self, who: str = "t-member", **fields: Any) -> dict[str, Any]:
        """A new cluster template, as shown."""
        body = {
            "name": "ct",
            "coe": "kubernetes",
            "image_id": "ub",
            "flavor_id": "m1",
            "master_flavor_id": "m1",
            "external_network_id": "ext",
            **fields,
        }
        answer = self.call("POST", "/v1/clustertemplates", who, json=body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def cluster(self, who: str = "t-member", **fields: Any) -> str:
        """The UUID of a new cluster."""
        answer = self.call("POST", "/v1/clusters", who, json={"name": "c", **fields})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["uuid"])

    def _mock(self) -> None:
        mock = self.cloud
        service = {**token_body("t-admin")}
        mock.post(
            f"{KEYSTONE}/auth/tokens",
            json=service,
            status_code=201,
            headers={"X-Subject-Token": "service-token"},
        )
        mock.get(f"{KEYSTONE}/auth/tokens", json=self._validate)
        mock.get(re.compile(rf"^{KEYSTONE}/projects/"), json=self._project)
        mock.get(re.compile(r"^http://compute\.test/.*flavors/detail"), json=self._flavors)
        mock.get(re.compile(r"^http://compute\.test/.*os-keypairs/"), json=self._keypair)
        mock.get(re.compile(r"^http://image\.test/.*images/"), json=self._image)
        mock.get(re.compile(r"^http://image\.test/.*images\?"), json=self._images)
        mock.get(re.compile(r"^http://network\.test/.*networks"), json=self._networks)
        mock.get(re.compile(r"^http://network\.test/.*subnets"), json=self._subnets)

    def _validate(self, request: Any, context: Any) -> Any:
        self.asked.append("keystone")
        token = request.headers["X-Subject-Token"]
        if token not in PEOPLE:
            context.status_code = 404
            return {"error": {"code": 404, "message": "no such token", "title": "Not Found"}}
        context.headers["X-Subject-Token"] = token
        return token_body(token)

    def _project(self, request: Any, context: Any) -> Any:
        ident = request.path.rsplit("/", 1)[-1]
        if ident not in {project for _, project, _ in PEOPLE.values()}:
            context.status_code = 404
            return {"error": {"code": 404, "message": "no such project", "title": "Not Found"}}
        return {"project": {"id": ident, "name": ident}}

    def _flavors(self, request: Any, context: Any) -> Any:
        self.asked.append("flavors")
        return {"flavors": self.flavors}

    def _keypair(self, request: Any, context: Any) -> Any:
        self.asked.append("keypair")
        name = unquote(request.path.rsplit("/", 1)[-1])
        if name != "kp":
            context.status_code = 404
            return {"itemNotFound": {"code": 404, "message": "no key pair"}}
        return {"keypair": {"name": name}}

    def _image(self, request: Any, context: Any) -> Any:
        self.asked.append("image")
        ident = request.path.rsplit("/", 1)[-1]
        for image in self.images:
            if image["id"] == ident:
                return image
        context.status_code = 404
        return {}

    def _images(self, request: Any, context: Any) -> Any:
        self.asked.append("images")
        return {"images": _filtered(self.images, request)}

    def _networks(self, request: Any, context: Any) -> Any:
        self.asked.append("networks")
        return {"networks": _filtered(NETWORKS, request)}

    def _subnets(self, request: Any, context: Any) -> Any:
        self.asked.append("subnets")
        return {"subnets": _filtered(SUBNETS, request)}


def _filtered(rows: list[dict[str, Any]], request: Any) -> list[dict[str, Any]]:
    wanted = {key: values[0] for key, values in request.qs.items() if key in ("name", "id")}
    external = request.qs.get("router:external")
    return [
        row
        for row in rows
        if all(str(row[key]).lower() == value for key, value in wanted.items())
        and (not external or row["router:external"])
    ]


@contextmanager
def world(folder: Path, settings: str = "", database: str | None = None) -> Iterator[World]:
    """A world, taken down at the end."""
    with World(folder, settings, database) as made:
        yield made


def detail(answer: Any) -> str:
    """The text of an answer's error."""
    return str(answer.json()["errors"][0]["detail"])
