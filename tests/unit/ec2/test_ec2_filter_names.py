"""Every filter name of spec ec2.md 1.11, upstream's and what today's tools send, is taken."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import pytest

#: By module and table.
NAMES = {
    "availability_zone.FILTERS": "state zone-name",
    "region.FILTERS": "region-name endpoint opt-in-status",
    "images.image.FILTERS": """
        architecture block-device-mapping.device-name block-device-mapping.snapshot-id
        block-device-mapping.volume-size description image-id image-type is-public kernel_id
        kernel-id name owner-id ramdisk-id root-device-name root-device-type state owner-alias
        virtualization-type hypervisor platform creation-date""",
    "instances.instance_filters.INSTANCE": """
        availability-zone block-device-mapping.delete-on-termination
        block-device-mapping.device-name block-device-mapping.status
        block-device-mapping.volume-id client-token dns-name group-id group-name
        instance.group-id instance.group-name image-id instance-id instance-state-code
        instance-state-name instance-type ip-address kernel-id key-name launch-index launch-time
        private-dns-name private-ip-address ramdisk-id root-device-name root-device-type subnet-id
        vpc-id association.public-ip association.ip-owner-id network-interface.description
        network-interface.subnet-id network-interface.vpc-id network-interface.owner-id
        network-interface.requester-managed network-interface.status
        network-interface.mac-address network-interface.source-destination-check
        network-interface.group-id network-interface.group-name
        network-interface.network-interface.id network-interface.network-interface-id
        network-interface.attachment.attachment-id network-interface.attachment.instance-id
        network-interface.attachment.device-index network-interface.attachment.status
        network-interface.attachment.attach-time
        network-interface.attachment.delete-on-termination
        network-interface.attachment.instance-owner-id
        network-interface.addresses.private-ip-address network-interface.addresses.primary
        network-interface.addresses.association.public-ip
        network-interface.addresses.association.ip-owner-id
        reservation-id owner-id tag availability-zone-id""",
    "instances.key_pair.FILTERS": "fingerprint key-name key-pair-id",
    "tag.FILTERS": "key tag-key resource-id resource-type value tag-value",
    "volumes.snapshot.FILTERS": """
        description owner-id progress snapshot-id start-time status volume-id volume-size""",
    "volumes.volume.FILTERS": """
        availability-zone client-token create-time encrypted size snapshot-id status volume-id
        volume-type attachment.delete-on-termination attachment.device attachment.instance-id
        attachment.status multi-attach-enabled""",
}


@pytest.mark.parametrize("place", NAMES)
def test_every_filter_of_the_spec_is_taken(place: str) -> None:
    module, _, table = place.rpartition(".")
    taken: Mapping[str, object] = getattr(
        importlib.import_module(f"trimaran.ec2.kinds.{module}"), table
    )
    assert set(NAMES[place].split()) - set(taken) == set()
