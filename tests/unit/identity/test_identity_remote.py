"""Errors of the services in our tree; texts as the services of 2026.2 send them."""

from __future__ import annotations

import json

import pytest
import requests

from trimaran import errors
from trimaran.identity.remote import RemoteError, error_from


def answer(status: int, body: object, headers: dict[str, str] | None = None) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response._content = (body if isinstance(body, str) else json.dumps(body)).encode()
    response.headers.update(headers or {})
    return response


NOVA_QUOTA = "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"
CINDER_QUOTA = "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded"
GLANCE_PAGE = (
    "<html><head><title>404 Not Found</title></head><body><h1>404 Not Found</h1>"
    "No image found with ID x<br /><br />\n\n</body></html>"
)


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "text"),
    [
        (404, {"itemNotFound": {"code": 404, "message": "Instance x could not be found."}},
         errors.NotFound, "itemNotFound", "Instance x could not be found."),
        (403, {"forbidden": {"code": 403, "message": NOVA_QUOTA}},
         errors.QuotaExceeded, "forbidden", NOVA_QUOTA),
        (403, {"forbidden": {"code": 403, "message": "Policy doesn't allow x."}},
         errors.Forbidden, "forbidden", "Policy doesn't allow x."),
        (413, {"overLimit": {"code": 413, "message": CINDER_QUOTA, "retryAfter": "0"}},
         errors.QuotaExceeded, "overLimit", CINDER_QUOTA),
        (409, {"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources",
                                "detail": ""}},
         errors.QuotaExceeded, "OverQuota", "Quota exceeded for resources"),
        (409, {"NeutronError": {"type": "NetworkInUse", "message": "in use", "detail": ""}},
         errors.Conflict, "NetworkInUse", "in use"),
        (404, {"NeutronError": "gone"}, errors.NotFound, "NeutronError", "gone"),
        (404, GLANCE_PAGE, errors.NotFound, "",
         "404 Not Found 404 Not Found No image found with ID x"),
        (404, {"message": "No image found with ID x<br /><br />\n\n\n", "code": "404 Not Found",
               "title": "Not Found"},
         errors.NotFound, "Not Found", "No image found with ID x"),
        (404, {"code": 404, "title": "Not Found", "description": "Secret not found."},
         errors.NotFound, "Not Found", "Secret not found."),
        (404, {"error": {"code": 404, "title": "Not Found", "message": "Could not find user"}},
         errors.NotFound, "Not Found", "Could not find user"),
        (404, {"errors": [{"status": 404, "code": "placement.undefined", "detail": "none"}]},
         errors.NotFound, "placement.undefined", "none"),
        (400, {"badRequest": {"code": 400, "message": "bad"}},
         errors.BadRequest, "badRequest", "bad"),
        (400, {"badRequest": {"message": "Quota class name is bad"}},
         errors.BadRequest, "badRequest", "Quota class name is bad"),
        (401, {"error": {"code": 401, "title": "Unauthorized", "message": "no"}},
         errors.Unauthenticated, "Unauthorized", "no"),
        (405, "", errors.BadRequest, "", ""),
        (415, "[]", errors.BadRequest, "", ""),
        (429, "", errors.TooManyRequests, "", ""),
        (500, {"computeFault": {"code": 500, "message": "Unexpected API Error."}},
         errors.Unavailable, "computeFault", "Unexpected API Error."),
        (503, "<h1>503</h1> haproxy", errors.Unavailable, "", "503 haproxy"),
        (302, "", errors.Unavailable, "", ""),
    ],
)  # fmt: skip
def test_mapping(status: int, body: object, kind: type, code: str, text: str) -> None:
    error = error_from(answer(status, body), service="compute")
    assert isinstance(error, kind)
    assert isinstance(error, RemoteError)
    assert type(error).__mro__[2] is kind
    assert (error.service, error.remote_status) == ("compute", status)
    assert (error.remote_code, error.remote_message) == (code, text)
    assert error.status == kind.status


def test_the_service_s_words_are_not_the_caller_s_message() -> None:
    error = error_from(
        answer(500, {"computeFault": {"message": "DBError at nova@db01"}}), service="compute"
    )
    assert "db01" not in str(error)
    assert str(error) == errors.Unavailable.default


def test_413_with_a_waiting_time_is_a_rate_limit() -> None:
    assert isinstance(
        error_from(answer(413, "", {"Retry-After": "30"}), service="compute"),
        errors.TooManyRequests,
    )
    assert isinstance(
        error_from(answer(413, "", {"Retry-After": "0"}), service="compute"), errors.QuotaExceeded
    )


@pytest.mark.parametrize("header", ["X-Openstack-Request-Id", "X-Compute-Request-Id"])
def test_request_id_of_the_service(header: str) -> None:
    assert error_from(answer(404, "", {header: "req-5"}), service="x").request_id == "req-5"
