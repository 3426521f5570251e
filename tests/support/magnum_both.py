"""API and conductor in one process before the sandbox cloud, as section 12's table wants it.

The sandbox driver only pretends its clusters (label ``sandbox_polls``), and is
asked every fifth of a second, so that a state is reached at once.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from tests.support.cloud import ADMIN, DEMO, CloudEnv, Person
from tests.support.magnum_daemons import LATEST, image, write_conf
from trimaran.config import magnum as options
from trimaran.db import migrate
from trimaran.magnum import rpc
from trimaran.magnum.api import app
from trimaran.magnum.conductor import service

POLL = 0.2
PATIENCE = 120.0
PRETENDED = {"sandbox_polls": "1"}


class Both:
    """A whole Magnum in this process.

    Args:
        client: of the API.
        cloud: the sandbox.
        names: what the sandbox has for these tests: ``image``, ``fcos``, ``noos``,
            ``dup`` (two external networks) and ``m0`` (a flavor without disk).
    """

    def __init__(self, client: TestClient, cloud: CloudEnv, names: dict[str, str]) -> None:
        self.client = client
        self.cloud = cloud
        self.names = names
        self.project = str(cloud.session(DEMO).get_project_id())
        self._tokens: dict[Person, str] = {}

    def call(self, method: str, path: str, who: Person | None = DEMO, **kwargs: Any) -> Any:
        """One request.

        Args:
            method: HTTP method.
            path: path and query.
            who: None sends no token.
            kwargs: of the test client, and ``version``: the version header's
                value, None for no header.
        """
        headers = dict(kwargs.pop("headers", {}))
        version = kwargs.pop("version", LATEST["OpenStack-API-Version"])
        if version is not None:
            headers["OpenStack-API-Version"] = version
        if who is not None:
            if who not in self._tokens:
                self._tokens[who] = str(self.cloud.session(who).get_token())
            headers["X-Auth-Token"] = self._tokens[who]
        return self.client.request(method, path, headers=headers, **kwargs)

    def template(self, who: Person = DEMO, image: str = "image", **fields: Any) -> dict[str, Any]:
        """A new template, as shown; its name is new unless given."""
        body = {
            "name": f"ct-{uuid.uuid4().hex[:8]}",
            "coe": "kubernetes",
            "image_id": self.names[image],
            "flavor_id": "m1.small",
            "master_flavor_id": "m1.small",
            "external_network_id": "public",
            **fields,
        }
        answer = self.call("POST", "/v1/clustertemplates", who, json=body)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def cluster(
        self, template: dict[str, Any], status: str | None = "CREATE_COMPLETE", **fields: Any
    ) -> str:
        """The UUID of a new cluster, once it has a status."""
        body = {
            "name": f"c-{uuid.uuid4().hex[:8]}",
            "cluster_template_id": template["uuid"],
            "labels": PRETENDED,
            **fields,
        }
        answer = self.call("POST", "/v1/clusters", json=body)
        assert answer.status_code == 202, answer.text
        ident = str(answer.json()["uuid"])
        if status:
            self.until(ident, status)
        return ident

    def until(self, ident: str, status: str) -> dict[str, Any]:
        """The cluster once it has a status; ``gone`` is one too."""

        def there(answer: Any) -> bool:
            return bool(status == answer.json().get("status", "gone"))

        return dict(self.get_until(f"/v1/clusters/{ident}", there).json())

    def get_until(self, path: str, right: Callable[[Any], bool], who: Person = DEMO) -> Any:
        """The answer to a GET once it is right."""
        deadline = time.monotonic() + PATIENCE
        while not right(answer := self.call("GET", path, who)):
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.05)
        return answer


@contextlib.contextmanager
def both(folder: Path, cloud: CloudEnv, **settings: Any) -> Iterator[Both]:
    """A Magnum on SQLite with what its tests need of the cloud; all is removed at the end.

    Args:
        folder: for its files; the driver's is ``driver`` below it.
        cloud: the sandbox.
        settings: options as ``section__name``.
    """
    url = f"sqlite:///{folder}/magnum.sqlite"
    migrate.upgrade(url, "magnum")
    # Small keys are made quickly; their size is not what is tested here.
    settings = {
        "certificates__cert_manager_type": "x509keypair",
        "x509__rsa_key_size": 1024,
    } | settings
    conf = options.load([str(write_conf(folder, cloud, url, "fake://", 9511, **settings))])
    transport = rpc.open_transport(conf)
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(_fixtures(cloud))
        conductor = service.build(conf, transport=transport, sync_interval=POLL)
        conductor.start()
        stack.callback(conductor.stop, 10)
        built = app.build(conf, transport=transport)
        client = stack.enter_context(TestClient(built, base_url="http://magnum.test:9511"))
        yield Both(client, cloud, names)


@contextlib.contextmanager
def _fixtures(cloud: CloudEnv) -> Iterator[dict[str, str]]:
    tag = f"table-{uuid.uuid4().hex[:8]}"
    admin = cloud.session(ADMIN)
    network = {"service_type": "network", "interface": "public"}
    compute = {"service_type": "compute", "interface": "public"}
    with contextlib.ExitStack() as stack:
        names = {
            "image": stack.enter_context(image(cloud)),
            "fcos": stack.enter_context(image(cloud, "fedora-coreos")),
            "noos": stack.enter_context(image(cloud, None)),
            "dup": f"{tag}-dup",
            "m0": f"{tag}-m0",
        }
        for _ in range(2):
            body = {"network": {"name": names["dup"], "router:external": True}}
            made = cloud.call(ADMIN, "network", "POST", "/v2.0/networks", json=body)["network"]
            stack.callback(admin.delete, f"/v2.0/networks/{made['id']}", endpoint_filter=network)
        flavor = {"name": names["m0"], "ram": 64, "vcpus": 1, "disk": 0}
        made = cloud.call(ADMIN, "compute", "POST", "/flavors", json={"flavor": flavor})["flavor"]
        stack.callback(admin.delete, f"/flavors/{made['id']}", endpoint_filter=compute)
        yield names


def detail(answer: Any) -> str:
    """The text of an answer's error."""
    return str(answer.json()["errors"][0]["detail"])
