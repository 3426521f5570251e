"""The rows of the conformance table (spec/skyline.md 9): what each asks, and what should be seen.

A row looks at one console and says in a line what it saw.  ``want`` is what the specification
expects of ours; where upstream has a fault, ``upstream`` is that.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from console_gates import Call, Played
from console_played import port, server
from console_world import SecondFactor, World, query_of

See = Callable[[World], str]


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        number: in the specification.
        request: in words.
        want: what ours should answer.
        upstream: what upstream does instead, "" when it should be the same.
        variant: needs the console with single sign-on and a trusted address header.
        see: looks.
    """

    number: int
    request: str
    want: str
    upstream: str
    variant: bool
    see: See


ROWS: list[Row] = []


def row(
    number: int, request: str, want: str, *, upstream: str = "", variant: bool = False
) -> Callable[[See], See]:
    """Adds a row."""

    def adding(see: See) -> See:
        ROWS.append(Row(number, request, want, upstream, variant, see))
        return see

    return adding


def statuses(*answers: Any) -> str:
    """Their statuses."""
    return ", ".join(str(answer.status) for answer in answers)


def strings(value: Any) -> str:
    """Whether it is a list of texts."""
    good = isinstance(value, list) and value and all(isinstance(each, str) for each in value)
    return "list of strings" if good else repr(value)[:60]


@row(1, "A GET /config", "200 default_domain, default_region")
def _(world: World) -> str:
    answer = world.call("GET", "/config")
    return f"{answer.status} {', '.join(answer.json)}"


@row(2, "A GET /sso, off", "200 false []")
def _(world: World) -> str:
    answer = world.call("GET", "/sso")
    return f"{answer.status} {str(answer.json['enable_sso']).lower()} {answer.json['protocols']}"


@row(
    3,
    "A GET /sso, identity providers set",
    "200 label Okta; identity_providers/okta/protocols/openid/websso?origin=",
    variant=True,
)
def _(world: World) -> str:
    answer = world.call("GET", "/sso")
    (each,) = answer.json["protocols"]
    path = re.sub(r"^.*/OS-FEDERATION/|(?<=origin=).*$", "", each["url"])
    return f"{answer.status} label {each['label']}; {path}"


@row(4, "A GET /contrib/regions", "200 list of strings")
def _(world: World) -> str:
    answer = world.call("GET", "/contrib/regions")
    return f"{answer.status} {strings(answer.json)}"


@row(5, "A GET /contrib/domains", '401 {"message":"Unauthorized: Token not found"}')
def _(world: World) -> str:
    answer = world.call("GET", "/contrib/domains")
    return f"{answer.status} {answer.text}"


@row(6, "D GET /contrib/domains", "200 list of strings")
def _(world: World) -> str:
    answer = world.call("GET", "/contrib/domains", cookie=world.demo)
    return f"{answer.status} {strings(answer.json)}"


@row(7, "A GET /profile", "401 message")
def _(world: World) -> str:
    answer = world.call("GET", "/profile")
    return f"{answer.status} {', '.join(answer.json)}"


@row(8, "A, D GET /nope", '401; 404 {"detail":"Not Found"}')
def _(world: World) -> str:
    known = world.call("GET", "/nope", cookie=world.demo)
    return f"{world.call('GET', '/nope').status}; {known.status} {known.text}"


@row(
    9,
    "POST /login, good",
    "200, 14 members, Path=/; SameSite=lax, HS256, 4 claims, time_expired = exp; "
    "session is HttpOnly (F24)",
    upstream="200, 14 members, Path=/; SameSite=lax, HS256, 4 claims, time_expired = exp",
)
def _(world: World) -> str:
    answer = world.login()
    session = next(each for each in answer.cookies if each[0] == "session")
    claims = world.claims(session[1])
    parts = sorted(session[2].split("; "))
    plain = "; ".join(each for each in parts if each != "HttpOnly")
    same = answer.cookie("time_expired") == str(claims["exp"]) == str(answer.json["exp"])
    mark = "; session is HttpOnly (F24)" if "HttpOnly" in parts else ""
    return (
        f"{answer.status}, {len(answer.json)} members, {plain}, HS256, {len(claims)} claims, "
        f"time_expired {'=' if same else '!='} exp{mark}"
    )


@row(10, "the same", "default project; off listed with enabled=false")
def _(world: World) -> str:
    body = world.login().json
    kind = "default" if body["project"]["id"] == world.project else "another"
    off = body["projects"].get(world.people.projects["off"], {})
    return f"{kind} project; off listed with enabled={str(off.get('enabled')).lower()}"


@row(11, "POST /login, bad password", "401 detail with HTTP 401, no cookies")
def _(world: World) -> str:
    answer = world.login(password="wrong")
    said = "with HTTP 401" if "HTTP 401" in answer.json.get("detail", "") else answer.text
    return f"{answer.status} detail {said}, {len(answer.cookies) or 'no'} cookies"


@row(12, "POST /login, norole", "401 You are not authorized for any projects or domains.")
def _(world: World) -> str:
    answer = world.login("norole")
    return f"{answer.status} {answer.json['detail']}"


@row(13, "POST /login without password", "422 ['body', 'password'] missing")
def _(world: World) -> str:
    answer = world.call("POST", "/login", body={"username": "x"})
    return f"{answer.status} {answer.json['detail'][0]['loc']} {answer.json['detail'][0]['type']}"


@row(14, "POST /login, region Nowhere", "200 RegionOne")
def _(world: World) -> str:
    answer = world.login(region="Nowhere")
    return f"{answer.status} {answer.json['region']}"


@row(15, "POST /login, request id foo; empty", "422 string_pattern_mismatch; 200")
def _(world: World) -> str:
    bad = world.login(headers={"X-Openstack-Request-Id": "foo"})
    good = world.login(headers={"X-Openstack-Request-Id": ""})
    return f"{bad.status} {bad.json['detail'][0]['type']}; {good.status}"


def _totp(world: World, code: str, receipt: str = SecondFactor.RECEIPT) -> Any:
    user = world.people.names["totp"]
    body = {"username": user, "passcode": code, "receipt": receipt, "domain": "Default"}
    with world.playing(SecondFactor(world.cloud.auth_url, user)):
        return world.call("POST", "/login/totp", body=body)


@row(16, "POST /login, TOTP user †", "401 totp_required=True, receipt")
def _(world: World) -> str:
    with world.playing(SecondFactor(world.cloud.auth_url, world.people.names["totp"])):
        answer = world.login("totp")
    detail = answer.json["detail"]
    return f"{answer.status} totp_required={detail['totp_required']}, {list(detail)[-1]}"


@row(17, "POST /login/totp, wrong code †", "401 invalid_totp")
def _(world: World) -> str:
    answer = _totp(world, "000000")
    return f"{answer.status} {answer.json['detail']}"


@row(18, "POST /login/totp, good code †", "200, 2 cookies")
def _(world: World) -> str:
    answer = _totp(world, SecondFactor.CODE)
    return f"{answer.status}, {len(answer.cookies)} cookies"


@row(19, "POST /login/totp, passcode 12345", "422")
def _(world: World) -> str:
    return statuses(_totp(world, "12345"))


@row(20, "POST /websso, good token", "302 /base/overview, 0 bytes, 2 cookies")
def _(world: World) -> str:
    answer = world.call("POST", "/websso", form=f"token={world.people.token('demo')}")
    where = answer.headers["Location"]
    return f"{answer.status} {where}, {len(answer.text)} bytes, {len(answer.cookies)} cookies"


@row(21, "POST /websso bad; no field; GET", "401 detail; 422; 405 POST")
def _(world: World) -> str:
    bad = world.call("POST", "/websso", form="token=bad")
    none = world.call("POST", "/websso", form="other=1")
    get = world.call("GET", "/websso")
    return f"{bad.status} {', '.join(bad.json)}; {none.status}; {get.status} {get.headers['Allow']}"


@row(22, "D GET /profile", "200, uuid, exp and token of the login; /api/openstack/regionone/")
def _(world: World) -> str:
    login = world.login()
    answer = world.call("GET", "/profile", cookie=login.cookie())
    members = ("uuid", "exp", "keystone_token")
    same = all(answer.json[each] == login.json[each] for each in members)
    prefix = answer.json["endpoints"]["nova"].removesuffix("nova")
    return f"{answer.status}, uuid, exp and token {'of' if same else 'not of'} the login; {prefix}"


@row(
    23,
    "cookie: garbage; other key; expired; without region",
    "401 Not enough segments; 401 Signature verification failed.; "
    "401 Token expired - Signature has expired.; 401 'region'",
)
def _(world: World) -> str:
    bad = [
        "garbage",
        world.changed(key="x" * 32),
        world.changed(exp=int(time.time()) - 10),
        world.changed(region=None),
    ]
    found = [world.call("GET", "/settings", cookie=each) for each in bad]
    said = [each.json["message"].removeprefix("Unauthorized: ") for each in found]
    return "; ".join(f"{each.status} {text}" for each, text in zip(found, said, strict=True))


def _by_header(world: World, token: str, path: str = "/profile", cookie: str = "") -> Any:
    return world.call("GET", path, headers={"X-Auth-Token": token}, cookie=cookie)


@row(24, "X-Auth-Token, scoped", "200 RegionOne, new uuid each time, no cookies")
def _(world: World) -> str:
    token = world.people.token("demo", "demo")
    first, second = _by_header(world, token), _by_header(world, token)
    new = "new" if first.json["uuid"] != second.json["uuid"] else "one"
    cookies = len(first.cookies) or "no"
    return f"{first.status} {first.json['region']}, {new} uuid each time, {cookies} cookies"


@row(25, "X-Auth-Token, unscoped", "401 Unauthorized: 'project'")
def _(world: World) -> str:
    answer = _by_header(world, world.people.token("demo"))
    return f"{answer.status} {answer.json['message']}"


@row(26, "bad cookie and good X-Auth-Token", "401")
def _(world: World) -> str:
    token = world.people.token("demo", "demo")
    return statuses(_by_header(world, token, cookie="garbage"))


@row(27, "D near its end, GET /settings", "200, 2 cookies, same uuid and token, later exp")
def _(world: World) -> str:
    old = world.changed(exp=int(time.time()) + 600)
    answer = world.call("GET", "/settings", cookie=old)
    before, after = world.claims(old), world.claims(answer.cookie())
    same = all(before[each] == after[each] for each in ("uuid", "keystone_token", "region"))
    later = "later" if after["exp"] > before["exp"] else "same"
    kind = "same" if same else "other"
    return f"{answer.status}, {len(answer.cookies)} cookies, {kind} uuid and token, {later} exp"


@row(
    28,
    "D near its end, POST /switch_project",
    "200, 1 session cookie, the last is the new one",
    upstream="200, 2 session cookies, the last is the old one",
)
def _(world: World) -> str:
    old = world.changed(exp=int(time.time()) + 600)
    answer = world.call("POST", f"/switch_project/{world.people.projects['demo']}", cookie=old)
    sessions = [value for name, value, _ in answer.cookies if name == "session"]
    same = world.claims(sessions[-1])["uuid"] == world.claims(old)["uuid"]
    plural = "s" if len(sessions) > 1 else ""
    last = "old" if same else "new"
    return f"{answer.status}, {len(sessions)} session cookie{plural}, the last is the {last} one"


@row(29, "D POST /switch_project/{demo}; /nope", "200 new token, new uuid, 2 cookies; 401 detail")
def _(world: World) -> str:
    old = world.claims(world.demo)
    good = world.call("POST", f"/switch_project/{world.people.projects['demo']}", cookie=world.demo)
    bad = world.call("POST", "/switch_project/nope", cookie=world.demo)
    token = "new" if good.json["keystone_token"] != old["keystone_token"] else "old"
    uuid = "new" if good.json["uuid"] != old["uuid"] else "old"
    cookies = f"{len(good.cookies)} cookies"
    return (
        f"{good.status} {token} token, {uuid} uuid, {cookies}; {bad.status} {next(iter(bad.json))}"
    )


@row(30, "D POST /switch_region/nope", "401 Region not accessible")
def _(world: World) -> str:
    answer = world.call("POST", "/switch_region/nope", cookie=world.demo)
    return f"{answer.status} {answer.json['detail']}"


@row(
    31,
    "D POST /logout, then the same cookie",
    "200 Logout OK, session Max-Age=0; 401 Token revoked; Keystone token ended; row until exp",
)
def _(world: World) -> str:
    cookie = world.login().cookie()
    claims = world.claims(cookie)
    answer = world.call("POST", "/logout", cookie=cookie)
    age = next((a for n, _, a in answer.cookies if n == "session" and "Max-Age=0" in a), "")
    after = world.call("GET", "/settings", cookie=cookie)
    said = after.json["message"].removeprefix("Unauthorized: ")
    ended = "valid" if world.people.is_valid(claims["keystone_token"]) else "ended"
    until = "exp" if world.revoked(claims["uuid"]) == claims["exp"] else "another time"
    return (
        f"{answer.status} {answer.json['message']}, session {'Max-Age=0' if age else 'kept'}; "
        f"{after.status} {said}; Keystone token {ended}; row until {until}"
    )


@row(32, "A POST /logout", "401")
def _(world: World) -> str:
    return statuses(world.call("POST", "/logout"))


@row(
    33, "D GET /extension/servers?all_projects", "403 Not allowed to get servers for all projects."
)
def _(world: World) -> str:
    answer = world.call("GET", "/extension/servers?all_projects=true", cookie=world.demo)
    return f"{answer.status} {answer.json['detail']}"


@row(34, "D GET servers: limit=0; status=DELETED; sort_keys=x", "422, 422, 422")
def _(world: World) -> str:
    asked = ("limit=0", "status=DELETED", "sort_keys=x")
    return statuses(
        *(world.call("GET", f"/extension/servers?{each}", cookie=world.demo) for each in asked)
    )


def _nova(rows: list[dict[str, Any]]) -> Callable[[Call], Played | None]:
    def play(call: Call) -> Played | None:
        if call.service == "nova" and "/servers/detail" in call.path:
            return Played({"servers": rows})
        if call.service == "cinder" and "/volumes/detail" in call.path:
            wanted = re.findall(r"'([^']+)'", unquote(call.path))
            metadata = {"image_id": "9c8d7e6f-0000-4000-8000-000000000001", "image_name": "root"}
            attached = [{"server_id": rows[0]["id"], "device": "/dev/vda"}] if rows else []
            return Played({"volumes": [
                {"id": each, "volume_image_metadata": metadata, "bootable": "true",
                 "attachments": attached} for each in wanted]})  # fmt: skip
        return None

    return play


@row(
    35,
    "D GET /extension/servers ‡",
    "200 host null, project_name null, image root of the volume; Nova: sort_dir sort_key 2.79",
)
def _(world: World) -> str:
    with world.playing(_nova([server(world.project)])):
        world.gates.take()
        path = "/extension/servers?sort_keys=created_at&sort_dirs=desc&limit=10"
        answer = world.call("GET", path, cookie=world.demo)
    (one,) = answer.json["servers"]
    call = world.asked("nova", "/servers/detail")
    keys = " ".join(sorted(each for each in query_of(call) if each.startswith("sort")))
    fields = {name.lower(): value for name, value in (call.headers if call else {}).items()}
    version = fields.get("openstack-api-version", "").removeprefix("compute ")
    null = {name: "null" if one[name] is None else "set" for name in ("host", "project_name")}
    return (
        f"{answer.status} host {null['host']}, project_name {null['project_name']}, "
        f"image {one['image_name']} of the volume; Nova: {keys} {version}"
    )


@row(36, "M the same, all_projects ‡", "200 host compute-1, project_name set")
def _(world: World) -> str:
    with world.playing(_nova([server(world.project)])):
        path = "/extension/servers?all_projects=true&limit=10"
        answer = world.call("GET", path, cookie=world.admin)
    (one,) = answer.json["servers"]
    named = "set" if one["project_name"] not in (None, world.project) else "missing"
    return f"{answer.status} host {one['host']}, project_name {named}"


@row(
    37,
    "D GET /extension/recycle_servers with one ‡; none",
    "200 with reclaim_timestamp; 200 []",
    upstream="500; 200 []",
)
def _(world: World) -> str:
    with world.playing(_nova([server(world.project, status="SOFT_DELETED")])):
        one = world.call("GET", "/extension/recycle_servers", cookie=world.demo)
    none = world.call("GET", "/extension/recycle_servers", cookie=world.demo)
    said = ""
    if one.status == 200:
        said = " with reclaim_timestamp" * ("reclaim_timestamp" in one.json["recycle_servers"][0])
    return f"{one.status}{said}; {none.status} {none.json['recycle_servers']}"


@row(
    38,
    "D GET /extension/volumes?uuid=a&uuid=b",
    "200 count; Cinder: id ['a', 'b'], all_tenants True, project_id own, system token",
)
def _(world: World) -> str:
    world.gates.take()
    answer = world.call("GET", "/extension/volumes?uuid=a&uuid=b", cookie=world.demo)
    call = world.asked("cinder", "/volumes/detail")
    query = query_of(call)
    own = "own" if query.get("project_id") == [world.project] else query.get("project_id")
    fields = {name.lower(): value for name, value in (call.headers if call else {}).items()}
    mine = world.claims(world.demo)["keystone_token"]
    token = "user's" if fields.get("x-auth-token") == mine else "system"
    (ids,), (tenants,) = query["id"], query["all_tenants"]
    return (
        f"{answer.status} {next(iter(answer.json))}; Cinder: id {ids}, "
        f"all_tenants {tenants}, project_id {own}, {token} token"
    )


@row(39, "D GET /extension/volume_snapshots?uuid=foreign", "200 count 0")
def _(world: World) -> str:
    path = "/extension/volume_snapshots?uuid=0c8d7e6f-0000-4000-8000-000000000001"
    answer = world.call("GET", path, cookie=world.demo)
    return f"{answer.status} count {answer.json['count']}"


@row(
    40,
    "D GET /extension/ports?device_owner=&device_owner=compute:nova ‡",
    "200 10.0.0.5, fd00::5, UP; Neutron: device_owner '', 'compute:nova'",
)
def _(world: World) -> str:
    def play(call: Call) -> Played | None:
        played = call.service == "neutron" and "/ports" in call.path
        return Played({"ports": [port(world.project)]}) if played else None

    with world.playing(play):
        world.gates.take()
        path = "/extension/ports?device_owner=&device_owner=compute:nova"
        answer = world.call("GET", path, cookie=world.demo)
    (one,) = answer.json["ports"]
    call = world.asked("neutron", "/ports")
    owners = re.findall(r"device_owner=([^&]*)", unquote(call.path) if call else "")
    shown = ", ".join(repr(each) for each in sorted(owners))
    state = one["origin_data"]["admin_state"]
    return (
        f"{answer.status} {', '.join(one['ipv4'])}, {', '.join(one['ipv6'])}, {state}; "
        f"Neutron: device_owner {shown}"
    )


@row(41, "D; M GET /extension/compute-services", "403; 200, no nulls")
def _(world: World) -> str:
    denied = world.call("GET", "/extension/compute-services", cookie=world.demo)
    answer = world.call("GET", "/extension/compute-services", cookie=world.admin)
    nulls = [each for one in answer.json["services"] for each in one.values() if each is None]
    return f"{denied.status}; {answer.status}, {len(nulls) or 'no'} nulls"


@row(42, "D; M GET /query?query=up", "200 1 series; 200 2 series")
def _(world: World) -> str:
    found = [world.call("GET", "/query?query=up", cookie=who) for who in (world.demo, world.admin)]
    return "; ".join(f"{each.status} {len(each.json['data']['result'])} series" for each in found)


@row(43, "M GET /query_range", "200 metric, value")
def _(world: World) -> str:
    path = "/query_range?query=up&start=1&end=2&step=1"
    answer = world.call("GET", path, cookie=world.admin)
    return f"{answer.status} {', '.join(answer.json['data']['result'][0])}"


@row(44, "M GET /query that Prometheus refuses", "400 detail = the raw body")
def _(world: World) -> str:
    answer = world.call("GET", "/query?query=broken", cookie=world.admin)
    raw = '{"status": "error", "errorType": "bad_data"}'
    kind = "the raw body" if answer.json["detail"] == raw else answer.json["detail"]
    return f"{answer.status} detail = {kind}"


@row(
    45,
    "D GET /policies",
    "200, booleans, 16 services, today's rules",
    upstream="200, booleans, 16 services, 1860 rules",
)
def _(world: World) -> str:
    answer = world.call("GET", "/policies", cookie=world.demo)
    rules = answer.json["policies"]
    services = {each["rule"].partition(":")[0] for each in rules}
    plain = "booleans" if all(type(each["allowed"]) is bool for each in rules) else "others"
    count = f"{len(rules)} rules" if world.peer.venv else "today's rules"
    return f"{answer.status}, {plain}, {len(services)} services, {count}"


def _check(world: World, rules: list[str], **target: str) -> Any:
    body: dict[str, Any] = {"rules": rules} | ({"target": target} if target else {})
    return world.call("POST", "/policies/check", body=body, cookie=world.demo)


@row(46, "D POST /policies/check: rule; unknown; foreign project", "True; False; False")
def _(world: World) -> str:
    rule = "nova:os_compute_api:servers:index"
    asked = [
        _check(world, [rule]),
        _check(world, ["nova:nope"]),
        _check(world, [rule], project_id="zzz"),
    ]
    return "; ".join(str(each.json["policies"][0]["allowed"]) for each in asked)


@row(47, "D POST /policies/check foo:bar; foo", "403 'foo'; 403 list index out of range")
def _(world: World) -> str:
    found = [_check(world, [rule]) for rule in ("foo:bar", "foo")]
    return "; ".join(f"{each.status} {each.json['detail']}" for each in found)


@row(48, "override file with ! for a rule, then removed", "False; True")
def _(world: World) -> str:
    rule = "os_compute_api:servers:index"
    file = world.folder / "policy" / "nova_policy.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'"{rule}": "!"\n')
    try:
        denied = _check(world, [f"nova:{rule}"]).json["policies"][0]["allowed"]
    finally:
        file.unlink()
    return f"{denied}; {_check(world, [f'nova:{rule}']).json['policies'][0]['allowed']}"


@row(49, "D PUT /setting; M PUT bad key; M PUT; D GET; M DELETE", "403; 404; 200; ['x']; ['usb_c']")
def _(world: World) -> str:
    def put(key: str, cookie: str) -> Any:
        return world.call("PUT", "/setting", body={"key": key, "value": ["x"]}, cookie=cookie)

    denied, bad = put("usb_models", world.demo), put("nope", world.admin)
    good = put("usb_models", world.admin)
    seen = world.call("GET", "/setting/usb_models", cookie=world.demo).json["value"]
    gone = world.call("DELETE", "/setting/usb_models", cookie=world.admin).json["value"]
    return f"{denied.status}; {bad.status}; {good.status}; {seen}; {gone}"


@row(50, "A GET /docs, /redoc, /api/v1/openapi.json", "200, 200, 200; 3.1.0, 25 paths")
def _(world: World) -> str:
    found = [
        world.call("GET", path, prefix="") for path in ("/docs", "/redoc", "/api/v1/openapi.json")
    ]
    document = found[-1].json
    return f"{statuses(*found)}; {document['openapi']}, {len(document['paths'])} paths"


@row(51, "HEAD /config; D GET /extension/servers/", "405; 307")
def _(world: World) -> str:
    slash = world.call("GET", "/extension/servers/", cookie=world.demo)
    return f"{world.call('HEAD', '/config').status}; {slash.status}"


@row(
    52,
    "D GET servers with X-Real-IP 9.9.9.9 and a request id, option set",
    "Nova sees for=9.9.9.9 and the id",
    variant=True,
)
def _(world: World) -> str:
    ident = "req-01234567-89ab-cdef-0123-456789abcdef"
    headers = {"X-Real-IP": "9.9.9.9", "X-Openstack-Request-Id": ident}
    world.gates.take()
    world.call("GET", "/extension/servers", cookie=world.demo, headers=headers)
    call = world.asked("nova", "/servers")
    fields = {name.lower(): value for name, value in (call.headers if call else {}).items()}
    who = re.search(r"for=[^;]*", fields.get("forwarded", ""))
    known = "the id" if fields.get("x-openstack-request-id") == ident else "no id"
    return f"Nova sees {who[0] if who else 'nobody'} and {known}"
