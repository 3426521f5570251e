"""The console's front end in a real browser, as a person uses it.

PyPI's bundle of 2022 and today's sources have the same forms with a few more
fields in one or the other; what differs is said here and nowhere else.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Route, expect, sync_playwright

from tests.support.cloud import Person

ROOT = Path(__file__).parents[2]
#: where the screenshots are kept
SHOTS = ROOT / "artifacts" / "console"
# Generous: a loaded machine makes servers slowly.
PATIENCE_MS = 120_000
expect.set_options(timeout=PATIENCE_MS)
# Nothing of what a browser likes to tell its maker.
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; a machine without it fails, as with every other part."""
    found = shutil.which("chromium", path=f"{os.environ.get('PATH', '')}:/usr/bin")
    assert found, "chromium is not installed: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


def field(page: Page | Locator, form: str, name: str) -> Locator:
    """An input of one of the console's forms; their ids have blanks."""
    return page.locator(f'[id="{form}_{name}"]')


class Window:
    """One browser window with a memory of its own: cookies, storage, history.

    Args:
        browser: the browser.
        url: where the console is.
        name: of the front end; begins the names of the screenshots.

    Attributes:
        old: the front end is that of 2022.
        asked: (status, method, path) of the answers of the console API.
        errors: scripts' errors that nobody caught.
    """

    def __init__(self, browser: Browser, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self.old = name == "wheel"
        self.context = browser.new_context(viewport={"width": 1440, "height": 1000})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.asked: list[tuple[int, str, str]] = []
        self.errors: list[str] = []
        self._waiting: set[Any] = set()
        self.page.on("request", lambda request: self._waiting.add(request))
        self.page.on("requestfinished", lambda request: self._waiting.discard(request))
        self.page.on("requestfailed", lambda request: self._waiting.discard(request))
        self.page.on("response", self._answered)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _answered(self, response: Any) -> None:
        path = response.url.removeprefix(self.url)
        if path.startswith(("/api/openstack/skyline/", "/api/v1/")):
            self.asked.append((response.status, response.request.method, path))

    def close(self) -> None:
        self.context.close()

    def shot(self, name: str) -> None:
        """Keeps what the window shows when all of it has come."""
        self.settle()
        self.keep(name)

    def keep(self, name: str) -> None:
        """Keeps what the window shows now."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{self.name}-{name}.png")

    def see(self, text: str) -> None:
        """Waits for a text."""
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS)

    def open(self, path: str) -> None:
        self.page.goto(self.url + path)

    def settle(self) -> None:
        """Waits until the page has asked nothing for a moment.

        A list that comes late takes away what was chosen from the one before.
        """
        calm = 0
        until = time.monotonic() + PATIENCE_MS / 1000
        while calm < 4:
            assert time.monotonic() < until, f"still asking: {[r.url for r in self._waiting]}"
            self.page.wait_for_timeout(150)
            calm = 0 if self._waiting else calm + 1

    # -- who is there ------------------------------------------------------

    def enter(self, person: Person, password: str) -> None:
        """Fills in the login form and sends it."""
        page = self.page
        # An answer that comes late would close the list of domains again.
        first, second = ("contrib/domains", "contrib/regions") if self.old else ("sso", "config")
        with (
            page.expect_response(f"**/api/v1/{first}"),
            page.expect_response(f"**/api/v1/{second}"),
        ):
            self.open("/auth/login")
        domain = field(page, "normal_login", "domain")
        if self.old:
            # Domains are chosen from a list that everybody may ask for.
            page.locator(".ant-select-selection-item").wait_for()
            domain.click()
            page.locator(f".ant-select-item-option[title='{person.domain}']").click()
            field(page, "normal_login", "username").fill(person.name)
        else:
            domain.fill(f"{person.name}@{person.domain}")
        field(page, "normal_login", "password").fill(password)
        page.get_by_role("button", name="Log in").click()

    def log_in(self, person: Person) -> None:
        """Logs in and waits for the first page."""
        self.enter(person, person.password)
        self.page.wait_for_url("**/base/**")
        self.see(f"Hello, {person.name}")

    def log_out(self) -> None:
        self.page.locator(".anticon-user").hover()
        self.page.get_by_role("button", name="Sign Out").click()
        self.page.wait_for_url("**/auth/login**")

    @property
    def header(self) -> Locator:
        """The bar at the top: project and domain."""
        return self.page.locator("#project-switch")

    def projects(self) -> Locator:
        """Opens the list of projects to switch to; its rows."""
        self.header.get_by_role("button").first.click()
        return self.page.locator(".ant-modal .ant-table-row")

    def switch(self, project: str) -> None:
        """Goes on in another project."""
        row = self.projects().filter(has_text=project)
        row.wait_for()
        self.settle()
        row.locator("input").check()
        self.confirm()
        expect(self.header).to_contain_text(project, timeout=PATIENCE_MS)

    # -- what is there -----------------------------------------------------

    def row(self, text: str) -> Locator:
        """The row of the page's table with this text."""
        return self.page.locator(".ant-table-row", has_text=text)

    def see_row(self, text: str, state: str) -> None:
        """Waits for a row in a state; the page asks again by itself."""
        expect(self.row(text)).to_contain_text(state, timeout=PATIENCE_MS, ignore_case=True)

    def check(self, item: str, text: str) -> None:
        """Chooses a row of a table in a form."""
        column = self.page.locator(f"#form-item-col-{item}")
        box = column.locator(".ant-table-row", has_text=text).first.locator("input")
        box.wait_for(state="attached")
        self.settle()
        box.check()
        expect(column.locator(".ant-tag", has_text=text)).to_be_visible(timeout=PATIENCE_MS)

    def go_on(self, step: str) -> None:
        """Goes to the next step of a long form, and waits for its lists.

        The last of them to come gives the step's fields their first values again.
        """
        self.page.get_by_role("button", name=f"Next: {step}", exact=True).click()
        expect(self.page.locator(".ant-steps-item-active")).to_contain_text(
            step, timeout=PATIENCE_MS
        )
        self.settle()

    def confirm(self) -> None:
        """Sends a form; 2022 says "Confirm" where today says "OK"."""
        buttons = self.page.get_by_role("button", name=re.compile("^(OK|Confirm)$"))
        buttons.last.click()

    def make_network(self, name: str, cidr: str) -> None:
        """Makes a network with a subnet."""
        page, form = self.page, "create network"
        self.open("/network/networks")
        button = page.get_by_role("button", name="Create Network")
        button.wait_for()
        # A list that comes late closes the form, too.
        self.settle()
        button.click()
        field(page, form, "name").wait_for()
        self.settle()
        field(page, form, "name").fill(name)
        if page.locator("#form-item-col-availableZone .ant-form-item-required").count():
            field(page, form, "availableZone").click()
            page.locator(".ant-select-item-option").first.click()
        page.locator("#form-item-col-create_subnet input").check()
        field(page, form, "subnet_name").fill(f"{name}-subnet")
        field(page, form, "cidr").fill(cidr)
        self.shot("network-form")
        self.confirm()

    def make_volume(self, name: str) -> None:
        """Makes an empty volume of 1 GiB."""
        page, form = self.page, "create volume"
        self.open("/storage/volume/create")
        self.check("volume_type", "sandbox")
        page.locator("#form-item-col-size input:visible").last.fill("1")
        field(page, form, "name").fill(name)
        self.shot("volume-form")
        self.confirm()

    def make_server(self, name: str, network: str) -> None:
        """Makes a server that boots from a new volume."""
        page = self.page
        self.open("/compute/instance/create")
        self.check("flavor", "m1.tiny")
        page.locator("#form-item-col-image").get_by_text("Others", exact=True).first.click()
        self.check("image", "cirros")
        page.locator("#form-item-col-systemDisk .ant-select").click()
        page.locator(".ant-select-item-option", has_text="sandbox").click()
        page.locator("#form-item-col-systemDisk .ant-input-number-input:visible").fill("1")
        self.shot("server-form-1")
        self.go_on("Network Config")
        self.check("networkSelect", network)
        self.check("securityGroup", "default")
        self.shot("server-form-2")
        self.go_on("System Config")
        field(page, "SystemStep", "name").fill(name)
        page.locator("#form-item-col-loginType").get_by_text("Password").click()
        # The image names its user.
        for item in ("password", "confirmPassword"):
            field(page, "SystemStep", item).fill("Correct-Horse-7")
        self.shot("server-form-3")
        self.go_on("Confirm Config")
        self.see(network)
        self.shot("server-form-4")
        self.confirm()


def lend_a_zone(page: Page) -> None:
    """Gives Neutron an availability zone, which only its agents' reports make.

    The form of 2022 demands one, and the sandbox has no agents; Neutron itself
    gets to hear nothing of the zone.
    """

    def zones(route: Route) -> None:
        zone = {"name": "lent", "resource": "network", "state": "available"}
        route.fulfill(json={"availability_zones": [zone]})

    def networks(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        body = route.request.post_data_json
        body["network"].pop("availability_zone_hints", None)
        route.continue_(post_data=body)

    page.route("**/neutron/v2.0/availability_zones*", zones)
    page.route("**/neutron/v2.0/networks", networks)
