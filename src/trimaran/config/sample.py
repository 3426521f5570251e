"""Sample configuration files, generated from the option definitions.

A sample that is written by hand is wrong within a year.  These are generated,
checked in under ``etc/`` and compared by a test; every option is there with
its default, and each sample is itself a valid file.

Run ``python -m trimaran.config.sample etc`` to write them.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from oslo_config import cfg

from trimaran.config import console, ec2, libraries, magnum, oslo
from trimaran.config.common import GROUP

WIDTH = 96

# Written out although they are comments elsewhere: nobody can use the defaults.
CREDENTIALS = (
    ("auth_type", "password"),
    ("auth_url", "http://127.0.0.1:5000/v3"),
    ("username", "<service user>"),
    ("password", "<password>"),
    ("user_domain_name", "Default"),
    ("project_name", "service"),
    ("project_domain_name", "Default"),
    ("cafile", "<None>"),
    ("insecure", "false"),
)
# What skyline-nginx-generator's nginx sends (spec/skyline.md F40): in a file that is made for
# the proxy that we make, it is right; by itself it would let anyone choose his address.
BEHIND_OUR_PROXY = {"secure_proxy_addr_header": "X-Real-IP"}
LIBRARIES = (
    "Options of oslo.log ([DEFAULT] debug, log_dir, log_file, use_json, ...), oslo.policy\n"
    "([oslo_policy]) and oslo.messaging ([DEFAULT] transport_url, [oslo_messaging_rabbit],\n"
    "[oslo_messaging_notifications]) are those libraries' own and are described there."
)


def files() -> dict[str, str]:
    """Returns path below ``etc/`` to content of all samples."""
    return {
        "skyline/skyline.yaml.sample": skyline(),
        "ec2api/ec2api.conf.sample": ini(ec2.product()),
        "magnum/magnum.conf.sample": ini(magnum.product()),
    }


def skyline() -> str:
    """Returns the sample of skyline.yaml."""
    lines = [
        "# Sample of /etc/skyline/skyline.yaml. Every option is there with its default, but for",
        "# secure_proxy_addr_header, which suits the nginx of skyline-nginx-generator.",
    ]
    for group, model in console.GROUPS.items():
        lines += ["", f"{group}:"]
        for number, (name, field) in enumerate(model.model_fields.items()):
            if number:
                lines.append("")
            lines += [f"  # {line}" for line in textwrap.wrap(field.description or "", WIDTH)]
            if name == "secret_key":
                lines.append("  # secret_key: <a long random text, the same on all replicas>")
            elif name in BEHIND_OUR_PROXY:
                lines.append(f"  {name}: {BEHIND_OUR_PROXY[name]}")
            elif field.default is None:
                lines.append(f"  # {name}:")
            else:
                lines += [f"  {line}".rstrip() for line in _yaml(name, field.default)]
    return "\n".join(lines) + "\n"


def ini(product: oslo.Product) -> str:
    """Returns the sample of an ini file."""
    path = f"/etc/{product.project}/{product.project}.conf"
    lines = [f"# Sample of {path}. Every option is a comment that shows its default."]
    lines += [f"# {line}" for line in LIBRARIES.split("\n")]
    for section, options in _sections(product).items():
        lines += ["", f"[{section}]"]
        for option in options:
            lines.append("")
            lines += [f"# {line}" for line in textwrap.wrap(option.help or "", WIDTH)]
            lines += _facts(option)
            lines.append(f"#{option.name} = {_ini_default(option)}")
        if section in product.credentials:
            lines += ["", "# keystoneauth's options, for example:"]
            lines += [f"#{name} = {value}" for name, value in CREDENTIALS]
    return "\n".join(lines) + "\n"


def _sections(product: oslo.Product) -> dict[str, list[cfg.Opt]]:
    sections = {name: list(options) for name, options in product.options.items()}
    sections.setdefault("database", []).extend(libraries.database_options(product.connection))
    for name in product.credentials:
        sections.setdefault(name, []).extend(libraries.credential_options())
    # Ours comes last: it is what upstream's file does not have.
    sections[GROUP] = sections.pop(GROUP, []) + oslo.own_options()
    return sections


def _facts(option: cfg.Opt) -> Iterator[str]:
    kind = option.type
    choices = getattr(kind, "choices", None)
    if choices:
        yield f"# One of: {', '.join(str(choice) for choice in choices)}"
    low = getattr(kind, "min", None)
    if low is not None and not isinstance(kind, cfg.types.Port):
        yield f"# Minimum: {low:g}"
    old = [
        f"[{name.group or 'same section'}] {name.name or option.name}"
        for name in option.deprecated_opts
    ]
    if old:
        yield f"# Old names: {', '.join(old)}"


def _ini_default(option: cfg.Opt) -> str:
    if option.sample_default is not None:
        return str(option.sample_default)
    default = option.default
    if default is None:
        return "<None>"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ",".join(str(item) for item in default)
    return str(default)


def _yaml(name: str, default: Any) -> list[str]:
    if isinstance(default, Mapping | list) and default:
        text = yaml.safe_dump({name: default}, sort_keys=False, width=WIDTH)
    else:
        text = f"{name}: {yaml.safe_dump(default, default_flow_style=True, width=WIDTH)}"
    return text.removesuffix("...\n").rstrip().split("\n")


def main(directory: str) -> None:
    """Writes the samples below a directory."""
    for name, content in files().items():
        path = Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
