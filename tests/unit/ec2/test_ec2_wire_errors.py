"""The deck's errors and everybody else's, as a client is told them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from botocore.parsers import EC2QueryParser, QueryParser

from trimaran import errors as deck
from trimaran.ec2 import sts
from trimaran.ec2.protocol import errors
from trimaran.ec2.protocol.errors import EC2Error


@pytest.mark.parametrize(
    ("raised", "code", "status"),
    [
        (deck.Unauthenticated(), "AuthFailure", 401),
        (deck.Forbidden("neutron policy said no"), "UnauthorizedOperation", 403),
        (deck.QuotaExceeded("Quota exceeded for instances"), "ResourceLimitExceeded", 400),
        (deck.NotFound(code="InvalidAMIID.NotFound"), "InvalidAMIID.NotFound", 400),
        (deck.NotFound(), "InvalidParameterValue", 400),
        (deck.Conflict(), "IncorrectState", 400),
        (deck.BadRequest(), "InvalidParameterValue", 400),
        (deck.TooManyRequests(), "RequestLimitExceeded", 503),
        (deck.TooLarge(), "RequestEntityTooLarge", 413),
        (deck.Unavailable(service="compute"), "Unavailable", 503),
        (
            deck.Unavailable(code="InsufficientInstanceCapacity"),
            "InsufficientInstanceCapacity",
            503,
        ),
        (deck.Forbidden(code="VpcLimitExceeded"), "VpcLimitExceeded", 400),
        (deck.TrimaranError("secret"), "InternalError", 500),
        (KeyError("secret"), "InternalError", 500),
        (RecursionError("secret"), "InternalError", 500),
        (errors.dry_run(), "DryRunOperation", 412),
    ],
)
def test_every_error_has_an_ec2_code(raised: Exception, code: str, status: int) -> None:
    told = errors.to_ec2(raised)
    assert (told.code, told.status) == (code, status)
    assert "secret" not in told.message
    assert "neutron" not in told.message


def test_a_header_of_the_deck_survives() -> None:
    told = errors.to_ec2(deck.Unavailable(headers={"Retry-After": "3"}))
    assert told.headers == {"Retry-After": "3"}


def test_unavailable_does_not_name_the_part() -> None:
    told = errors.to_ec2(deck.Unavailable("nova at 10.0.0.1 refused", service="compute"))
    assert "nova" not in told.message


def test_boto3_reads_the_error_document() -> None:
    hostile = "<&>\"' \x00 é"
    document = errors.error_xml(EC2Error("A.B", hostile), "req-7")
    parsed = EC2QueryParser().parse({"body": document, "headers": {}, "status_code": 400}, None)
    assert parsed["Error"] == {"Code": "A.B", "Message": "<&>\"' \ufffd é"}
    assert parsed["ResponseMetadata"]["RequestId"] == "req-7"
    root = ElementTree.fromstring(document)
    assert [node.tag for node in root] == ["Errors", "RequestID"]


def test_sts_errors_have_their_own_envelope() -> None:
    document = sts.error_xml(EC2Error("AuthFailure", "no", 401), "req-7")
    parsed = QueryParser().parse({"body": document, "headers": {}, "status_code": 401}, None)
    assert parsed["Error"]["Code"] == "AuthFailure"
    assert parsed["ResponseMetadata"]["RequestId"] == "req-7"


def test_not_found_names_what_is_missing_but_not_a_thousand_of_it() -> None:
    one = errors.not_found("InvalidInstanceID.NotFound", "instance ID", ["i-1"])
    assert one.message == "The instance ID 'i-1' does not exist"
    many = errors.not_found("X.NotFound", "instance ID", [f"i-{n}" for n in range(1000)])
    assert len(many.message) < 200


def test_long_values_are_cut() -> None:
    assert len(errors.invalid_value("X", "v" * 10_000).message) < 400
    assert len(errors.invalid_action("v" * 10_000).message) < 400


def test_terraform_recognises_the_unknown_action() -> None:
    told = errors.invalid_action("DescribeAddressesAttribute")
    assert told.code == "InvalidAction"
    assert told.message == (
        "The action DescribeAddressesAttribute is not valid for this web service."
    )
