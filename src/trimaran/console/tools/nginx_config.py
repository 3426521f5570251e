"""nginx's configuration as text, and what changed between two of them.

The fixed part is a template in the package's data, with ``@{name}`` where
nginx's own ``$name`` would be in the way.
"""

from __future__ import annotations

import difflib
import os
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from trimaran.console.tools.nginx_catalog import Location
from trimaran.errors import ConfigError

# The front end's own, whatever nginx_prefix is (spec/skyline.md 7.2).
CONSOLE_PATH = "/api/openstack/skyline/"
SOCKET = "unix:/var/lib/skyline/skyline.sock"

_ADDRESS = re.compile(r"[A-Za-z0-9.:*_/\[\]-]+")
_PREFIX = re.compile(r"(/[\w.~-]+)*")
_LANGUAGE = re.compile(r"[A-Za-z-]*")
_PROXIED = re.compile(
    r"^\s*location (\S+) \{$(?:(?!^\s*\}$).)*?^\s*proxy_pass (\S+);$", re.M | re.S
)
# The front end of PyPI's wheel speaks Chinese to a browser without this cookie.
# An empty header is not sent: who has chosen keeps the choice.
_LANGUAGE_MAP = """
    map $cookie_lang $language {{
        "" "lang={}; Path=/; SameSite=Lax";
        default "";
    }}
"""


class _Template(string.Template):
    delimiter = "@"


@dataclass(frozen=True)
class Site:
    """Everything that is not in the catalog.

    Attributes:
        listen: address and port.
        static: directory of the front end.
        access_log: path.
        error_log: path.
        prefix: option ``openstack.nginx_prefix``.
        upstream: where the API is, ``unix:<path>`` or ``<host>:<port>``.
        certfile: TLS certificate; TLS is on when both are given.
        keyfile: its key.
        run_dir: directory for the pid and nginx's temporary files; "" leaves
            them where the distribution has them.
        language: what the front end speaks to a browser that has not chosen;
            "" leaves that to the front end.
    """

    listen: str
    static: str
    access_log: str
    error_log: str
    prefix: str
    upstream: str = SOCKET
    certfile: str | None = None
    keyfile: str | None = None
    run_dir: str = ""
    language: str = ""

    @property
    def tls(self) -> bool:
        """Whether the site speaks https."""
        return bool(self.certfile and self.keyfile)


def render(site: Site, locations: Sequence[Location]) -> str:
    """Returns the file's text.

    Raises:
        ConfigError: a path cannot be written in nginx's language.
    """
    if not _ADDRESS.fullmatch(site.listen):
        raise ConfigError(f"{site.listen!r} is no address to listen on.")
    if not _PREFIX.fullmatch(site.prefix):
        raise ConfigError(f"openstack.nginx_prefix {site.prefix!r} is no path.")
    if not _LANGUAGE.fullmatch(site.language):
        raise ConfigError(f"{site.language!r} is no language.")
    source = resources.files("trimaran.console") / "data" / "nginx" / "nginx.conf.template"
    blocks = [*_api(site), *(_service(site.prefix, each) for each in locations)]
    return _Template(source.read_text(encoding="utf-8")).substitute(
        pid=_quoted(os.path.join(site.run_dir or "/run", "nginx.pid")),
        temporary="".join(_temporary(site.run_dir)),
        tls=_tls(site),
        access_log=_quoted(site.access_log),
        error_log=_quoted(site.error_log),
        upstream=_quoted(site.upstream),
        listen=f"{site.listen} ssl http2" if site.tls else site.listen,
        static=_quoted(site.static),
        language=_LANGUAGE_MAP.format(site.language) if site.language else "",
        cookie="            add_header Set-Cookie $language;\n" if site.language else "",
        locations="".join(f"\n{block}" for block in blocks),
    )


def proxied(text: str) -> dict[str, str]:
    """Returns path to URL of the proxied paths in a file made by ``render``."""
    return dict(_PROXIED.findall(text))


def changes(old: str, new: str) -> list[str]:
    """Says in a line each what the catalog's changes did to the proxied paths."""
    before, after = proxied(old), proxied(new)
    lines = [f"added {path} to {url}" for path, url in after.items() if path not in before]
    lines += [f"removed {path} to {url}" for path, url in before.items() if path not in after]
    lines += [
        f"changed {path} from {before[path]} to {url}"
        for path, url in after.items()
        if before.get(path, url) != url
    ]
    return lines


def difference(old: str, new: str, name: str) -> str:
    """Returns a unified diff, "" when there is none."""
    return "".join(
        difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (new)"
        )
    )


def _api(site: Site) -> Iterator[str]:
    paths = {CONSOLE_PATH: "http://skyline/"}
    # The callback of single sign-on follows the prefix (F44).
    paths.setdefault(f"{site.prefix}/skyline/", "http://skyline/")
    # The documentation page asks for this one.
    paths["/api/v1/"] = "http://skyline/api/v1/"
    for path, url in paths.items():
        yield _location(path, url, {"Host": "$http_host"}, ["proxy_redirect off;"])


def _service(prefix: str, location: Location) -> str:
    path = location.path(prefix)
    lines = [f"proxy_redirect {location.url} {path};"]
    if location.url.startswith("https:"):
        lines += ["proxy_ssl_protocols TLSv1.2 TLSv1.3;", "proxy_ssl_server_name on;"]
    title = f"        # {location.region} {location.name}\n"
    return title + _location(path, location.url, {"Host": location.host}, lines)


def _location(path: str, url: str, headers: Mapping[str, str], more: Sequence[str]) -> str:
    sent = {
        **headers,
        "Connection": '""',
        "X-Real-IP": "$remote_addr",
        "X-Forwarded-For": "$proxy_add_x_forwarded_for",
        "X-Forwarded-Proto": "$scheme",
        "X-Forwarded-Host": "$http_host",
    }
    lines = [
        f"proxy_pass {url};",
        *more,
        "proxy_buffering off;",
        *(f"proxy_set_header {name} {value};" for name, value in sent.items()),
    ]
    body = "".join(f"            {line}\n" for line in lines)
    return f"        location {path} {{\n{body}        }}\n"


def _tls(site: Site) -> str:
    if not site.tls:
        return ""
    lines = [
        "ssl_protocols TLSv1.2 TLSv1.3;",
        f"ssl_certificate {_quoted(site.certfile or '')};",
        f"ssl_certificate_key {_quoted(site.keyfile or '')};",
        "ssl_session_cache shared:SSL:10m;",
    ]
    return "\n" + "".join(f"    {line}\n" for line in lines)


def _temporary(run_dir: str) -> Iterator[str]:
    if run_dir:
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
            path = os.path.join(run_dir, name)
            yield f"    {name}_temp_path {_quoted(path)};\n"


def _quoted(text: str) -> str:
    """A parameter as nginx reads it back.

    Raises:
        ConfigError: nginx would put a variable in its place.
    """
    if "$" in text or not text.isprintable():
        raise ConfigError(f"{text!r} cannot be written into nginx's configuration.")
    if re.fullmatch(r"[\w./:@+,=\[\]-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
