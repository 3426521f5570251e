"""Objects and contexts on the wire, as upstream reads and writes them."""

from __future__ import annotations

import copy
from datetime import datetime

import pytest

from trimaran import errors
from trimaran.magnum import objects
from trimaran.magnum.context import RequestContext
from trimaran.magnum.rpc import envelope, faults
from trimaran.magnum.rpc.serializer import Serializer
from trimaran.magnum.rpc.threads import oslo_messaging


def test_an_envelope_is_upstreams() -> None:
    group = objects.NodeGroup(
        None,
        uuid="u",
        cluster_id="c",
        node_count=2,
        labels={"a": "b"},
        node_taints=[{"key": "k", "effect": "NoSchedule"}],
        created_at=datetime(2026, 1, 2, 3, 4, 5),
        max_node_count=None,
    )
    group.obj_reset_changes()
    group.node_count = 3
    assert envelope.pack(group) == {
        "magnum_object.name": "NodeGroup",
        "magnum_object.namespace": "magnum",
        "magnum_object.version": "1.2",
        "magnum_object.data": {
            "uuid": "u",
            "cluster_id": "c",
            "node_count": 3,
            "labels": {"a": "b"},
            "node_taints": [{"key": "k", "effect": "NoSchedule"}],
            "created_at": "2026-01-02T03:04:05Z",
            "max_node_count": None,
        },
        "magnum_object.changes": ["node_count"],
    }


@pytest.mark.parametrize(
    ("cls", "version"),
    [
        (objects.Cluster, "1.24"),
        (objects.ClusterTemplate, "1.21"),
        (objects.NodeGroup, "1.2"),
        (objects.Certificate, "1.2"),
        (objects.X509KeyPair, "1.2"),
        (objects.Quota, "1.0"),
        (objects.Stats, "1.0"),
        (objects.MagnumService, "1.0"),
        (objects.Federation, "1.0"),
    ],
)
def test_versions_are_upstreams(cls: type[objects.MagnumObject], version: str) -> None:
    assert envelope.pack(cls())["magnum_object.version"] == version


def test_what_is_read_is_what_was_written() -> None:
    template = objects.ClusterTemplate(None, uuid="t", public=False)
    cluster = objects.Cluster(None, uuid="c", labels={"a": "1"}, floating_ip_enabled=True)
    cluster.cluster_template = template
    cluster.cluster_template_id = "t"
    read = envelope.unpack(envelope.pack(cluster))
    assert isinstance(read, objects.Cluster)
    assert read == cluster
    assert read.cluster_template.uuid == "t"
    assert read.obj_what_changed() == cluster.obj_what_changed()


def test_fields_of_a_newer_minor_version_are_left_out() -> None:
    wire = envelope.pack(objects.Cluster(None, uuid="c"))
    wire["magnum_object.version"] = "1.99"
    wire["magnum_object.data"]["novelty"] = 1
    assert envelope.unpack(wire).as_dict() == {"uuid": "c"}


@pytest.mark.parametrize(
    "changes",
    [
        {"magnum_object.name": "Bay"},
        {"magnum_object.version": "2.0"},
        {"magnum_object.namespace": "nova"},
        {"magnum_object.data": {"docker_volume_size": "many"}},
        {"magnum_object.data": {"labels": {"a": None}}},
        {"magnum_object.data": {"created_at": "yesterday"}},
        {"magnum_object.data": []},
    ],
)
def test_garbage_is_refused(changes: dict[str, object]) -> None:
    wire = envelope.pack(objects.Cluster(None, uuid="c")) | changes
    with pytest.raises(errors.BadRequest):
        envelope.unpack(wire)


def test_containers_are_walked() -> None:
    serializer, context = Serializer(), RequestContext()
    wire = serializer.serialize_entity(context, {"c": [objects.Cluster(None, uuid="c")], "n": 1})
    assert wire["c"][0]["magnum_object.data"] == {"uuid": "c"}
    assert serializer.deserialize_entity(context, wire)["c"][0].uuid == "c"


def test_f55_a_context_has_upstreams_members_and_no_token_body() -> None:
    context = RequestContext(
        auth_token="secret", user_id="u", user_name="n", project_id="p", roles=["member"]
    )
    wire = Serializer().serialize_context(context)
    assert wire["auth_token"] == "secret"
    assert wire["auth_token_info"] is None
    assert {"user", "project_name", "user_domain_id", "is_admin", "all_tenants"} <= set(wire)
    assert "db" not in wire
    assert Serializer().deserialize_context(wire | {"novelty": 1}) == context
    assert "secret" not in repr(context)
    assert context.redacted_copy().to_dict()["auth_token"] is None


def test_errors_keep_their_meaning_on_the_way() -> None:
    ours = errors.BadRequest("no", code="NotSupported")
    sent = faults.outgoing(ours)
    assert (type(sent).__module__, type(sent).__name__) == (
        "magnum.common.exception",
        "NotSupported",
    )
    for arrived in (sent, oslo_messaging.RemoteError("NotSupported_Remote", "no", "trace")):
        back = faults.incoming(arrived)
        assert (type(back), back.message, back.code) == (errors.BadRequest, "no", "NotSupported")


def test_what_upstream_leaks_is_not_passed_on() -> None:
    back = faults.incoming(oslo_messaging.RemoteError("DBError", "SELECT secret", "trace"))
    assert (back.status, back.message) == (500, "The conductor could not do this.")


def test_no_answer_is_an_unavailable_conductor() -> None:
    back = faults.incoming(oslo_messaging.MessagingTimeout())
    assert isinstance(back, errors.Unavailable)
    assert back.service == "conductor"


def test_containers_are_plain_so_that_objects_can_be_copied() -> None:
    sent = envelope.pack(objects.Cluster(None, uuid="u", labels={"a": "b"}))
    read = envelope.unpack(sent)
    assert type(read.labels) is dict
    copy.deepcopy(read.labels)
