"""A person at the console: the real front end, Debian's nginx, and Debian's Chromium.

PyPI's bundle always; today's front end where ``make console-ui`` has built it
or ``TRIMARAN_CONSOLE_UI`` names it.  What the window shows is kept below
``artifacts/console``.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import Window, chromium, lend_a_zone
from tests.support.browser_tenant import Tenant, tenant
from tests.support.cloud import ADMIN, CloudEnv
from tests.support.console_service import SECRET, Console
from tests.support.ports import free_port
from trimaran.cli.demo import frontend
from trimaran.cli.demo.proxy import Proxy
from trimaran.cli.demo.settings import Places
from trimaran.db import migrate

FRONT_ENDS = ["wheel", "current"] if frontend.current() else ["wheel"]


@pytest.fixture(scope="module")
def console(cloud_env: CloudEnv, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """The console API, as the demo has it."""
    place = tmp_path_factory.mktemp("console")
    database = f"sqlite:///{place}/console.sqlite"
    migrate.upgrade(database, "console")
    settings = {
        "default": {
            "database_url": database,
            "secret_key": SECRET,
            "log_file": "/dev/stdout",
            "secure_proxy_addr_header": "X-Real-IP",
        },
        "openstack": {
            "keystone_url": cloud_env.auth_url,
            "system_user_password": "password",
            "default_region": cloud_env.region,
        },
        "trimaran": {"anonymous_domains": True},
    }
    service = Console(place / "etc", free_port(), settings, 1)
    service.wait_until_ready()
    yield service
    assert service.stop() == 0


@pytest.fixture(scope="module", params=FRONT_ENDS)
def site(
    request: pytest.FixtureRequest,
    console: Console,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, str]]:
    """(name, URL) of a front end that nginx serves."""
    places = Places(tmp_path_factory.mktemp("nginx"))
    for place in (places.nginx, places.log.parent, places.etc):
        place.mkdir(parents=True)
    (places.etc / "skyline.yaml").write_text((console.log.parent / "skyline.yaml").read_text())
    static = frontend.current() if request.param == "current" else frontend.of_wheel()
    assert static
    proxy = Proxy(places, free_port())
    proxy.ensure_running(static, int(console.base.rpartition(":")[2]))
    yield request.param, proxy.url
    proxy.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def user(cloud_env: CloudEnv) -> Iterator[Tenant]:
    with tenant(cloud_env) as made:
        yield made


@pytest.fixture
def window(
    browser: Browser, site: tuple[str, str], request: pytest.FixtureRequest
) -> Iterator[Window]:
    """A new window; whatever happens, its last sight is kept."""
    name, url = site
    opened = Window(browser, url, name)
    yield opened
    opened.keep(f"last-of-{request.function.__name__}")
    opened.close()
    assert not [row for row in opened.asked if row[0] >= 500]


def test_logging_in_shows_the_own_projects(window: Window, user: Tenant) -> None:
    window.open("/")
    window.page.wait_for_url("**/auth/login**")
    window.shot("login")
    window.log_in(user.person)
    expect(window.header).to_contain_text(user.person.project)
    window.shot("overview")
    rows = window.projects()
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text=user.person.project)).to_be_visible()
    expect(rows.filter(has_text=user.other.project)).to_be_visible()
    window.shot("projects")
    # Magnum is in the catalog and does not run here.
    assert not [error for error in window.errors if "status code 502" not in error]


def test_a_wrong_password_is_told(window: Window, user: Tenant) -> None:
    window.enter(user.person, "wrong")
    window.see("Username or password is incorrect")
    window.shot("wrong-password")
    assert "/auth/login" in window.page.url
    assert "session" not in {cookie["name"] for cookie in window.context.cookies()}


def test_a_network_a_volume_and_a_server_are_made(
    window: Window, user: Tenant, site: tuple[str, str]
) -> None:
    name = f"e2e-{uuid.uuid4().hex[:6]}"
    window.log_in(user.person)
    lend_a_zone(window.page)
    window.make_network(f"{name}-net", "10.77.0.0/24")
    window.see_row(f"{name}-net", "Active")
    window.shot("networks")
    window.make_volume(f"{name}-volume")
    window.page.wait_for_url("**/storage/volume")
    window.see_row(f"{name}-volume", "Available")
    window.shot("volumes")
    window.make_server(f"{name}-server", f"{name}-net")
    window.page.wait_for_url(re.compile("/compute/instance$"))
    window.see_row(f"{name}-server", "Active")
    window.see_row(f"{name}-server", "10.77.0.")
    window.shot("servers")


def test_switching_the_project_shows_the_other_one_s(window: Window, user: Tenant) -> None:
    window.log_in(user.person)
    before = window.context.cookies()
    window.switch(user.other.project)
    window.shot("switched")
    assert [cookie for cookie in before if cookie["name"] == "session"] != [
        cookie for cookie in window.context.cookies() if cookie["name"] == "session"
    ]
    window.open("/compute/instance")
    window.see("No Data")
    expect(window.header).to_contain_text(user.other.project)


def test_after_the_logout_the_back_button_brings_nothing_back(window: Window, user: Tenant) -> None:
    window.log_in(user.person)
    window.open("/compute/instance")
    window.page.locator(".ant-table").wait_for()
    session = [cookie for cookie in window.context.cookies() if cookie["name"] == "session"]
    window.log_out()
    window.shot("logged-out")
    assert "session" not in {cookie["name"] for cookie in window.context.cookies()}
    # The page has forgotten who was there, and the API does not tell it.
    window.page.go_back()
    window.page.wait_for_url("**/compute/instance")
    expect(window.page.locator(".ant-table")).to_have_count(0)
    expect(window.page.get_by_text(user.person.project)).to_have_count(0)
    window.shot("back")
    window.page.reload()
    window.page.wait_for_url("**/auth/login**")
    expect(window.page.get_by_role("button", name="Log in")).to_be_visible()
    # Nor does who has kept the cookie get in.
    window.context.add_cookies(session)
    with window.page.expect_response("**/api/v1/profile") as answer:
        window.open("/base/overview")
    assert answer.value.status == 401
    window.page.wait_for_url("**/auth/login**")


def test_an_administrator_sees_all_projects(window: Window, user: Tenant) -> None:
    window.log_in(ADMIN)
    window.open("/identity/project-admin")
    window.see_row(user.other.project, "Yes")
    window.shot("all-projects")
    with window.page.expect_response("**/extension/servers?*all_projects=true*") as answer:
        window.open("/compute/instance-admin")
    assert answer.value.status == 200
    window.page.locator(".ant-table").wait_for()
    window.shot("all-servers")
