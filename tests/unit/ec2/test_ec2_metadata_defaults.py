"""What a project prefers for the metadata of its launches to come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.ec2_openstack import Caller, OpenStack, code_of
from trimaran.ec2.kinds.images.image import describe_images
from trimaran.ec2.kinds.instances.instance_launch import run_instances
from trimaran.ec2.kinds.instances.metadata_defaults import (
    get_instance_metadata_defaults,
    modify_instance_metadata_defaults,
)


def _launch(me: Caller, openstack: OpenStack, **options: Any) -> dict[str, Any]:
    if not openstack.images:
        openstack.image()
    [image] = me(describe_images)["Images"]
    request: dict[str, Any] = {"ImageId": image["ImageId"], "MinCount": 1, "MaxCount": 1}
    if options:
        request["MetadataOptions"] = options
    [instance] = me(run_instances, **request)["Instances"]
    return dict(instance["MetadataOptions"])


def _level(me: Caller) -> dict[str, Any]:
    return dict(me(get_instance_metadata_defaults)["AccountLevel"])


def test_launches_get_what_the_project_prefers(
    openstack: OpenStack, me: Caller, them: Caller
) -> None:
    assert _level(me) == {}
    wanted = {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
    dry = code_of(me, modify_instance_metadata_defaults, **wanted, DryRun=True)
    assert (dry, _level(me)) == ("DryRunOperation", {})
    assert me(modify_instance_metadata_defaults, **wanted) == {"Return": True}
    me(modify_instance_metadata_defaults, InstanceMetadataTags="enabled")
    kept = {**wanted, "InstanceMetadataTags": "enabled"}
    assert _level(me) == {**kept, "ManagedBy": "account"}
    assert _level(them) == {}
    launched = _launch(me, openstack)
    assert {name: launched[name] for name in kept} == kept
    # A launch that says otherwise is believed, also where it says what nobody prefers.
    own = _launch(me, openstack, HttpTokens="optional")
    assert (own["HttpTokens"], own["HttpPutResponseHopLimit"]) == ("optional", 2)
    me(modify_instance_metadata_defaults, HttpTokens="no-preference", HttpPutResponseHopLimit=-1)
    assert _level(me) == {"InstanceMetadataTags": "enabled", "ManagedBy": "account"}
    assert _launch(me, openstack)["HttpTokens"] == "optional"
    me(modify_instance_metadata_defaults, InstanceMetadataTags="no-preference")
    assert _level(me) == {}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"HttpTokens": "sometimes"}, "InvalidParameterValue"),
        ({"HttpEndpoint": ""}, "InvalidParameterValue"),
        ({"HttpPutResponseHopLimit": 65}, "InvalidParameterValue"),
        ({"HttpPutResponseHopLimit": 0}, "InvalidParameterValue"),
        ({"HttpTokensEnforced": "perhaps"}, "InvalidParameterValue"),
        ({"HttpTokensEnforced": "enabled"}, "UnsupportedOperation"),
    ],
)
def test_what_cannot_be_preferred(me: Caller, request_: dict[str, Any], code: str) -> None:
    assert code_of(me, modify_instance_metadata_defaults, **request_) == code
    assert _level(me) == {}
