"""Answers to the front end: all rules at once, or some rules about a target.

One enforcer a service, built at the start.  The list of all answers is worked
out once for callers who are alike (see ``likeness``) and for one state of the
override files, then kept as one byte a rule.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from cachetools import LRUCache

from trimaran.config.common import Own
from trimaran.config.console import Settings
from trimaran.console.policies import attributes, ruleset
from trimaran.console.policies.likeness import Likeness
from trimaran.console.policies.system_scope import SystemScope
from trimaran.errors import Forbidden
from trimaran.identity import Identity, Token
from trimaran.policy import Enforcer

# Lists of answers that are kept; each takes two kilobytes.
KEPT = 1024
# An enforcer's version while its override file has never said anything.
UNTOUCHED = 1


class Policies:
    """The policy of the console.

    Args:
        settings: skyline.yaml.
        identity: tells who may act on the system.
        own: the deck's options.
    """

    def __init__(self, settings: Settings, identity: Identity, own: Own) -> None:
        self._stack = settings.openstack
        place, suffix = settings.default.policy_file_path, settings.default.policy_file_suffix
        sets = list(ruleset.all_embedded())
        self._enforcers = {
            each.service: Enforcer(
                each.service,
                each.rules,
                override_file=str(Path(place, f"{each.service}_{suffix}")),
                enforce_scope=False,
                references="defaults",
                default_rule="",
                # A look at 16 files costs a fifth of a millisecond, and an
                # operator who has saved his file wants to see it work.
                check_seconds=0.0,
            )
            for each in sets
        }
        self._likeness = Likeness(rule.check for each in sets for rule in each.rules)
        heads = [
            f'{{"rule":{json.dumps(f"{each.service}:{rule.name}")},"allowed":'
            for each in sets
            for rule in each.rules
        ]
        self._fragments = [(f"{head}false}}", f"{head}true}}") for head in heads]
        self._scope = SystemScope(
            identity, seconds=own.token_cache_seconds, size=own.token_cache_size
        )
        self._lock = threading.Lock()
        self._known: LRUCache[Hashable, bytes] = LRUCache(KEPT)

    def listing(self, token: Token, region: str) -> bytes:
        """Answers all rules, in the order of the rule sets.

        Args:
            token: the caller's, project-scoped.
            region: the session's.

        Returns:
            The JSON document of ``GET /policies``.

        Raises:
            errors.Unavailable: Keystone does not answer.
        """
        credentials = self._credentials(token, region)
        versions = self._versions()
        overridden = any(version != UNTOUCHED for version in versions)
        key = (versions, self._likeness.key(credentials, exact=overridden))
        with self._lock:
            answers = self._known.get(key)
        if answers is None:
            answers = self._work_out(token, credentials)
            with self._lock:
                self._known[key] = answers
        texts = [pair[answer] for pair, answer in zip(self._fragments, answers, strict=True)]
        return f'{{"policies":[{",".join(texts)}]}}'.encode()

    def check(
        self, token: Token, region: str, rules: Sequence[str], target: Mapping[str, str]
    ) -> list[tuple[str, bool]]:
        """Answers some rules.

        Args:
            token: the caller's, project-scoped.
            region: the session's.
            rules: names with their service in front; a rule that the service
                does not have is not allowed.
            target: replaces attributes of the caller's own target.

        Raises:
            errors.Forbidden: a name is malformed or its service unknown; the
                texts are upstream's, a KeyError's and an IndexError's.
            errors.Unavailable: Keystone does not answer.
        """
        wanted: dict[str, set[str]] = {}
        for rule in rules:
            service, colon, name = rule.partition(":")
            if not colon:
                raise Forbidden("list index out of range")
            if service not in self._enforcers:
                raise Forbidden(repr(service))
            wanted.setdefault(service, set()).add(name)
        if not wanted:
            return []
        credentials = self._credentials(token, region)
        about = {**self._target(token), **target}
        answers = {
            f"{service}:{name}": allowed
            for service, names in wanted.items()
            for name, allowed in self._enforcers[service]
            .allowed_many(names, credentials, about)
            .items()
        }
        return [(rule, answers[rule]) for rule in rules]

    def _work_out(self, token: Token, credentials: dict[str, object]) -> bytes:
        about = self._target(token)
        return bytes(
            allowed
            for enforcer in self._enforcers.values()
            for allowed in enforcer.allowed_many(enforcer.rules, credentials, about).values()
        )

    def _credentials(self, token: Token, region: str) -> dict[str, object]:
        return attributes.credentials(
            token,
            system_scope=self._scope.of(token, region),
            admin_roles=self._stack.system_admin_roles,
            reader_roles=self._stack.system_reader_roles,
        )

    def _target(self, token: Token) -> dict[str, object]:
        return attributes.target(token, enforce_new_defaults=self._stack.enforce_new_defaults)

    def _versions(self) -> tuple[int, ...]:
        return tuple(enforcer.version for enforcer in self._enforcers.values())
