"""One loader for the two ini files, on oslo.config.

oslo.config itself checks a value when it is read, which may be hours after
the start, and says nothing about a misspelt name.  Here all options are
registered, read once at load and compared with what the files hold.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from glob import glob
from os import path as paths

from oslo_config import cfg, types

from trimaran.config import libraries
from trimaran.config.common import GROUP, OWN_OPTIONS
from trimaran.errors import ConfigError

LOG = logging.getLogger("trimaran.config")

Options = Mapping[str, Sequence[cfg.Opt]]

SECRET_NAME = re.compile(r"password|secret|token|connection|url|key")


@dataclass(frozen=True)
class Product:
    """What distinguishes one ini file from the other.

    Attributes:
        project: oslo project name; the default file is
            ``/etc/<project>/<project>.conf``.
        options: group to its options.
        credentials: sections with keystoneauth options.
        retired_sections: upstream's sections without a meaning any more.
        retired: upstream's removed options, as ``section.name``.
        connection: the database when the file names none.
    """

    project: str
    options: Options
    credentials: tuple[str, ...] = ("keystone_authtoken",)
    retired_sections: frozenset[str] = frozenset()
    retired: frozenset[str] = frozenset()
    connection: str | None = None


def own_options() -> list[cfg.Opt]:
    """Returns the ``[trimaran]`` group for oslo.config."""
    kinds: dict[type, type[cfg.Opt]] = {int: cfg.IntOpt, float: cfg.FloatOpt}
    return [
        kinds[option.kind](
            option.name, default=option.default, min=option.minimum, help=option.help
        )
        for option in OWN_OPTIONS
    ]


def load(
    product: Product,
    files: Sequence[str] = (),
    dirs: Sequence[str] = (),
    args: Sequence[str] = (),
) -> cfg.ConfigOpts:
    """Reads a service's ini files.

    Args:
        product: whose files.
        files: ``--config-file`` values, later ones go first; none means the
            default file of the product.
        dirs: ``--config-dir`` values, read after the files.
        args: further oslo.config command line arguments (``--debug``).

    Returns:
        The options; each has been read once and has the right type.

    Raises:
        ConfigError: a file is missing, not readable or not an ini file, or an
            option has the wrong type; one sentence that names file and option.
    """
    from keystoneauth1 import loading

    conf = cfg.ConfigOpts()
    ours = _register(conf, product)
    arguments = [f"--config-file={item}" for item in files]
    arguments += [f"--config-dir={item}" for item in dirs]
    arguments += args
    chosen = [item for item in arguments if item.startswith(("--config-file", "--config-dir"))]
    default_files = cfg.find_config_files(project=product.project, prog=product.project)
    asks_only = {"-h", "--help", "--version"} & set(args)
    if not chosen and not default_files and not asks_only:
        raise ConfigError(
            f"/etc/{product.project}/{product.project}.conf: the file does not exist; "
            "create it or name another one with --config-file."
        )
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            conf(
                args=arguments,
                project=product.project,
                prog=product.project,
                default_config_files=default_files,
            )
    except SystemExit as stop:
        if stop.code == 0:  # --help, --version
            raise
        raise ConfigError(_complaint(complaint.getvalue(), files or default_files, dirs)) from None
    except cfg.ConfigFilesNotFoundError as error:
        names = ", ".join(error.config_files)
        raise ConfigError(f"{names}: the file does not exist.") from None
    except cfg.ConfigFilesPermissionDeniedError as error:
        names = ", ".join(error.config_files)
        raise ConfigError(f"{names}: the file cannot be read (permission denied).") from None
    except cfg.ConfigDirNotFoundError as error:
        raise ConfigError(f"{error.config_dir}: the directory does not exist.") from None
    except cfg.ConfigFileParseError as error:
        raise ConfigError(f"{error.config_file}: not an ini file ({error.msg}).") from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"{', '.join(files) or ', '.join(default_files)}: the file is not UTF-8 text."
        ) from None
    except cfg.RequiredOptError as error:
        raise ConfigError(f"[{error.group or 'DEFAULT'}] {error.opt_name} must be set.") from None
    for group in product.credentials:
        # After parsing: keystoneauth reads auth_section to know where auth_type is.
        loading.register_auth_conf_options(conf, group)
    found = _contents(
        conf.config_file or conf.default_config_files or (),
        conf.config_dir or conf.default_config_dirs or (),
    )
    _check_types(conf, ours, found)
    _warn_unknown(conf, product, ours, found)
    return conf


def _register(conf: cfg.ConfigOpts, product: Product) -> dict[tuple[str, str], cfg.Opt]:
    """Registers everything; returns the options whose definition is ours."""
    from keystoneauth1 import loading
    from oslo_log import log

    ours: dict[str, list[cfg.Opt]] = {group: list(opts) for group, opts in product.options.items()}
    ours.setdefault("database", []).extend(libraries.database_options(product.connection))
    ours.setdefault(GROUP, []).extend(own_options())
    ours.setdefault("oslo_policy", []).extend(libraries.policy_options())
    for group in product.credentials:
        ours.setdefault(group, []).extend(libraries.credential_options())
    for group, options in ours.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    log.register_options(conf)
    for group in product.credentials:
        loading.register_session_conf_options(conf, group)
    return {(group, option.dest): option for group, options in ours.items() for option in options}


@dataclass
class _File:
    """What one file holds: section → key → values."""

    name: str
    sections: dict[str, dict[str, list[str]]]


def _contents(files: Sequence[str], dirs: Sequence[str]) -> list[_File]:
    """Reads the files again as text, in order of growing precedence."""
    names = list(files)
    for directory in dirs:
        names += sorted(glob(paths.join(paths.expanduser(directory), "*.conf")))
    contents = []
    for name in names:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(name, sections).parse()
        contents.append(_File(name, sections))
    return contents


def _complaint(text: str, files: Sequence[str], dirs: Sequence[str]) -> str:
    """oslo.config ends the process on a bad value of an option that is a flag, too (debug)."""
    match = re.search(r"argument --([\w-]+): Invalid (\w+) value", text)
    if match is None:
        return " ".join(text.split()) or "The command line is not valid."
    name = match[1].replace("-", "_")
    file, value = _origin(_contents(files, dirs), "DEFAULT", name)
    wanted = "true or false" if match[2] == "Boolean" else f"of type {match[2].lower()}"
    shown = "" if value is None else f", not {value[:60]!r}"
    return f"{file}: [DEFAULT] {name} must be {wanted}{shown}."


def _registered(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Every option as (section, name, how to read it)."""
    for name in conf:
        if _is_group(conf, name):
            for option in conf[name]:
                yield name, option, partial(getattr, conf[name], option)
        else:
            yield "DEFAULT", name, partial(getattr, conf, name)


def _is_group(conf: cfg.ConfigOpts, name: str) -> bool:
    try:
        return isinstance(conf[name], cfg.ConfigOpts.GroupAttr)
    except (cfg.Error, ValueError):
        return False


def _check_types(
    conf: cfg.ConfigOpts, ours: Mapping[tuple[str, str], cfg.Opt], found: list[_File]
) -> None:
    for section, name, read in _registered(conf):
        try:
            read()
        except (cfg.TemplateSubstitutionError, cfg.NoSuchOptError):
            file, _ = _origin(found, section, name)
            raise ConfigError(
                f"{file}: [{section}] {name} refers to an option that does not exist; "
                "write $$ for a dollar sign."
            ) from None
        except (cfg.ConfigSourceValueError, ValueError):
            option = ours.get((section, name))
            file, value = _origin(found, section, name)
            secret = SECRET_NAME.search(name) if option is None else option.secret
            shown = "" if secret or value is None else f", not {value[:60]!r}"
            raise ConfigError(f"{file}: [{section}] {name} {_wanted(option)}{shown}.") from None


def _origin(found: list[_File], section: str, name: str) -> tuple[str, str | None]:
    """The last file that sets the option, and the text it has there."""
    for file in reversed(found):
        for key, values in file.sections.get(section, {}).items():
            if key.replace("-", "_") == name:
                return file.name, values[-1]
    return ", ".join(file.name for file in found) or "command line", None


def _wanted(option: cfg.Opt | None) -> str:
    """What the option must be, as the middle of a sentence."""
    kind = option.type if option is not None else None
    choices = getattr(kind, "choices", None)
    if choices:
        return f"must be one of {', '.join(str(choice) for choice in choices)}"
    items = getattr(getattr(kind, "item_type", None), "choices", None)
    if items:
        return f"must be a comma separated list of {', '.join(str(item) for item in items)}"
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    bounds = " and ".join(
        [f"at least {low:g}" for _ in [0] if low is not None]
        + [f"at most {high:g}" for _ in [0] if high is not None]
    )
    for known, text in _KINDS:
        if isinstance(kind, known):
            within = f" of {bounds}" if bounds and known is not types.Port else ""
            return f"must be {text}{within}"
    return "has a value of the wrong type"


# A subclass before its base.
_KINDS: tuple[tuple[type, str], ...] = (
    (types.Port, "a port number"),
    (types.Integer, "an integer"),
    (types.Float, "a number"),
    (types.Boolean, "true or false"),
    (types.IPAddress, "an IP address"),
    (types.List, "a comma separated list"),
    (types.Dict, "a comma separated list of key:value pairs"),
)


def _warn_unknown(
    conf: cfg.ConfigOpts,
    product: Product,
    ours: Mapping[tuple[str, str], cfg.Opt],
    found: list[_File],
) -> None:
    known: dict[str, set[str]] = {}
    for section, name, _ in _registered(conf):
        known.setdefault(section, set()).add(name)
    for option in ours.values():
        for old in option.deprecated_opts:
            if old.group and old.name:
                known.setdefault(old.group, set()).add(old.name)
    known["DEFAULT"] |= libraries.DEFAULT_NAMES
    for section in {*product.credentials, *_auth_sections(conf, product)}:
        known.setdefault(section, set()).update(libraries.CREDENTIAL_NAMES)
    seen: set[str] = set()
    for file in found:
        for section, keys in file.sections.items():
            if section in product.retired_sections or libraries.known_section(section):
                continue
            if section not in known:
                if section not in seen:
                    seen.add(section)
                    LOG.warning("%s: unknown section [%s] is ignored.", file.name, section)
                continue
            for key in keys:
                name = key.replace("-", "_")
                label = f"{section}.{name}"
                same = {name, key} & (known[section] | _deprecated(ours, section))
                if same or label in product.retired or label in seen:
                    continue
                seen.add(label)
                LOG.warning("%s: unknown option [%s] %s is ignored.", file.name, section, key)


def _deprecated(ours: Mapping[tuple[str, str], cfg.Opt], section: str) -> set[str]:
    """Old names of options that keep their section."""
    return {
        old.name
        for (group, _), option in ours.items()
        for old in option.deprecated_opts
        if group == section and old.name and not old.group
    }


def _auth_sections(conf: cfg.ConfigOpts, product: Product) -> set[str]:
    """Sections that ``auth_section`` of a credentials section points to."""
    chosen = {getattr(conf[group], "auth_section", None) for group in product.credentials}
    return {section for section in chosen if section}
