"""Ids: minting, parsing, and what is said of each kind."""

from __future__ import annotations

import pytest

from trimaran.ec2 import ids
from trimaran.ec2.protocol.errors import EC2Error


def test_a_new_id_has_eight_hex_digits_and_is_its_own_kind() -> None:
    made = {ids.mint("i") for _ in range(200)}
    assert len(made) == 200
    assert all(ids.is_id(each, ["i"]) and len(each) == 10 for each in made)
    assert ids.kind_of(ids.mint("subnet")) == "subnet"


def test_reservations_have_eight_characters() -> None:
    made = ids.mint_reservation()
    assert made.startswith("r-")
    assert len(made) == 10
    assert made[2:].isalnum()


def test_derived_ids_keep_the_number_after_the_last_dash() -> None:
    assert ids.derive("eipalloc-0000beef", "eipassoc") == "eipassoc-0000beef"
    assert ids.derive("eni-attach-0000beef", "eni") == "eni-0000beef"
    assert ids.hex_of("eni-attach-0000beef") == "0000beef"
    assert ids.kind_of("eni-attach-0000beef") == "eni"


@pytest.mark.parametrize("good", ["i-1", "i-0000beef", "i-0123456789abcdef0", "i-BEEF"])
def test_any_number_of_hex_digits_is_an_id(good: str) -> None:
    assert ids.check_id(good, "instanceId", "i") == good


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "i",
        "i-",
        "-1",
        "i-zzz",
        "vpc-00000001",
        "i-1\n",
        "i- 1",
        "i-0x1",
        "i-1_1",
        "ii-1",
        "í-1",
    ],
)
def test_everything_else_is_an_invalid_value(bad: str) -> None:
    with pytest.raises(EC2Error) as caught:
        ids.check_id(bad, "instanceId", "i")
    assert caught.value.code == "InvalidParameterValue"
    assert "i-..." in caught.value.message


def test_ids_of_a_list_are_checked_and_collapse() -> None:
    assert ids.check_ids(["i-2", "i-1", "i-2"], "instanceId", "i") == ["i-2", "i-1"]
    assert ids.check_ids(None, "instanceId", "i") == []
    with pytest.raises(EC2Error):
        ids.check_ids(["i-1", "vol-1"], "instanceId", "i")


@pytest.mark.parametrize(
    ("item_id", "code"),
    [
        ("i-1", "InvalidInstanceID.NotFound"),
        ("ari-1", "InvalidAMIID.NotFound"),
        ("vol-1", "InvalidVolume.NotFound"),
        ("snap-1", "InvalidSnapshot.NotFound"),
        ("sg-1", "InvalidGroup.NotFound"),
        ("subnet-1", "InvalidSubnetID.NotFound"),
        ("eipalloc-1", "InvalidAllocationID.NotFound"),
        ("foo-1", "InvalidID"),
    ],
)
def test_what_is_missing_is_said_with_its_kinds_code(item_id: str, code: str) -> None:
    error = ids.missing_ids([item_id])
    assert error.code == code
    assert item_id in error.message
