"""Repeats recorded calls of Terraform's provider and compares every field of every answer.

What a service chooses itself (ids, projects, addresses) differs from run to
run.  So an answer is the recorded one when it has the same fields, lists and
values up to a consistent renaming of those; what a call sends is renamed the
same way.
"""

from __future__ import annotations

import itertools
import json
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.terraform_record import answer_of

#: Numbers of ids, projects, MAC addresses, and addresses (also in names) that nobody asked for.
_NAMES = re.compile(
    r"(?<![0-9A-Za-z])(?:(?<=\br-)[0-9a-z]{8}|(?<=\bhost-)\d{1,3}(?:-\d{1,3}){3}"
    r"|[0-9a-f]{32}|[0-9a-f]{17}|[0-9a-f]{8}|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?!/|\d))(?![0-9A-Za-z])"
)
#: Seconds that something may be on its way.
PATIENCE = 240.0
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\S*\Z")


def _asked(step: dict[str, Any]) -> tuple[str, dict[str, str]]:
    return step["action"], step["parameters"]


class Replay:
    """One run of a recorded sequence.

    Args:
        url: where the API listens.
        keys: EC2 credentials.
        steps: as `terraform_record` wrote them.
    """

    def __init__(self, url: str, keys: tuple[str, str], steps: Sequence[dict[str, Any]]) -> None:
        self._url, self._keys, self._steps = url, keys, steps
        self._new: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        said = {word for step in steps for word in step["parameters"].values()}
        self._fixed = {word for word in said if re.fullmatch(r"[\d.]+", word)}

    def run(self) -> int:
        """Repeats all calls in their order; returns how many.

        Raises:
            AssertionError: an answer differs; the message says where.
        """
        number = 0
        for _, same in itertools.groupby(self._steps, key=_asked):
            steps = list(same)
            number += len(steps)
            self._repeat(steps[-1], number)
        return number

    def _repeat(self, step: dict[str, Any], number: int) -> None:
        """Asks until the answer is the last one of those that were recorded in a row.

        A provider asks again while something is on its way; how often says nothing.
        """
        where = f"{number} {step['resource']} {step['phase']} {step['action']}"
        deadline = time.monotonic() + PATIENCE
        while True:
            known = dict(self._new)
            told = self._call(step["action"], step["parameters"])
            try:
                self._compare(step["answer"], told, where)
            except AssertionError:
                self._new = known
                if not step["action"].startswith("Describe") or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    def _call(self, action: str, recorded: dict[str, str]) -> dict[str, Any]:
        parameters = {name: self._renamed(value) for name, value in recorded.items()}
        if "ClientToken" in parameters:
            parameters["ClientToken"] = uuid.uuid4().hex
            self._tokens[recorded["ClientToken"]] = parameters["ClientToken"]
        body = {"Action": action, "Version": "2016-11-15", **parameters}
        request = AWSRequest("POST", self._url + "/", data=body)
        SigV4Auth(Credentials(*self._keys), "ec2", "RegionOne").add_auth(request)
        sent = request.prepare()
        answer = requests.post(
            self._url + "/", data=sent.body, headers=dict(sent.headers), timeout=300
        )
        return answer_of(action, answer.status_code, answer.content)

    def _renamed(self, text: str) -> str:
        return _NAMES.sub(lambda found: self._new.get(found[0], found[0]), text)

    def _compare(self, recorded: Any, told: Any, where: str) -> None:
        if isinstance(recorded, dict):
            assert isinstance(told, dict), (where, recorded, told)
            assert recorded.keys() == told.keys(), (where, recorded, told)
            for name in recorded:
                if name == "ClientToken":
                    assert told[name] == self._tokens[recorded[name]], where
                    continue
                self._compare(recorded[name], told[name], f"{where} {name}")
        elif isinstance(recorded, list):
            assert isinstance(told, list), (where, recorded, told)
            assert len(recorded) == len(told), (where, recorded, told)
            ours = sorted(recorded, key=self._key_recorded)
            for one, other in zip(ours, sorted(told, key=self._key_told), strict=True):
                self._compare(one, other, where)
        elif isinstance(recorded, str) and isinstance(told, str):
            self._compare_text(recorded, told, where)
        else:
            assert recorded == told, (where, recorded, told)

    def _compare_text(self, recorded: str, told: str, where: str) -> None:
        if _TIME.match(recorded):
            assert _TIME.match(told), (where, recorded, told)
            return
        old, new = _NAMES.findall(recorded), _NAMES.findall(told)
        for one, other in zip(old, new, strict=False):
            if one in self._fixed:
                continue
            known = self._new.setdefault(one, other)
            assert known == other, (where, f"{one} was {known} and is {other}")
        assert self._renamed(recorded) == told, (where, self._renamed(recorded), told)

    def _key_recorded(self, value: Any) -> str:
        text = json.dumps(value, sort_keys=True)
        return _NAMES.sub(lambda found: self._new.get(found[0], "?"), text)

    def _key_told(self, value: Any) -> str:
        text = json.dumps(value, sort_keys=True)
        known = set(self._new.values())
        return _NAMES.sub(lambda found: found[0] if found[0] in known else "?", text)
