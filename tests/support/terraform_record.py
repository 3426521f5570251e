"""Records what the AWS provider of Terraform asks for, resource by resource.

    TRIMARAN_SANDBOX=… python -m tests.support.terraform_record THEME...

For each theme (a directory below ``tests/e2e/terraform``) it applies step 1,
refreshes, applies step 2, and destroys, one resource at a time, on a project of
its own.  What was made has to be what was wanted (an empty plan).  The calls
and answers go to ``tests/e2e/terraform/<theme>.json``, which
``tests/e2e/test_ec2_terraform_replay.py`` replays without Terraform.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import botocore.parsers
import botocore.session

from tests.support.cloud import CloudEnv
from tests.support.ec2 import running, write_conf
from tests.support.ec2_tenant import tenant
from tests.support.ports import free_port
from tests.support.terraform import THEMES, Call, Terraform, listening
from trimaran.db import migrate

#: What each call has and what says nothing about it.
_ALWAYS = ("Action", "Version")
_STARTS = ("apply_start", "refresh_start")
_ENDS = ("apply_complete", "refresh_complete", "apply_errored")


def answer_of(action: str, status: int, body: bytes) -> dict[str, Any]:
    """An EC2 answer as boto3 shows it, as JSON has it; an error is its code."""
    model = botocore.session.get_session().get_service_model("ec2")
    shape = model.operation_model(action).output_shape
    parser = botocore.parsers.create_parser("ec2")
    told = {"headers": {}, "status_code": status, "body": body}
    parsed: dict[str, Any] = parser.parse(told, shape)
    parsed.pop("ResponseMetadata", None)
    if "Error" in parsed:
        return {"Error": parsed["Error"]["Code"]}
    made: dict[str, Any] = json.loads(json.dumps(parsed, default=str))
    return made


def steps_of(events: Sequence[dict[str, Any]], calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The calls with the resource and the phase that each belongs to.

    Terraform worked on one resource at a time, so the time tells.
    """
    spans = []
    open_: dict[str, tuple[datetime, str]] = {}
    for event in events:
        hook = event.get("hook") or {}
        address = (hook.get("resource") or {}).get("addr", "")
        at = datetime.fromisoformat(event["@timestamp"])
        if event.get("type") in _STARTS:
            open_[address] = at, str(hook.get("action") or "read")
        elif event.get("type") in _ENDS and address in open_:
            start, phase = open_.pop(address)
            spans.append((start, at, address, phase))
    steps = []
    for call in sorted(calls, key=lambda each: each.at):
        if call.parameters["Action"] == "GetCallerIdentity":
            continue
        owner = next(((a, p) for start, end, a, p in spans if start <= call.at <= end), ("", ""))
        steps.append(
            {
                "resource": owner[0],
                "phase": owner[1],
                "action": call.parameters["Action"],
                "parameters": {k: v for k, v in call.parameters.items() if k not in _ALWAYS},
                "answer": answer_of(call.parameters["Action"], call.status, call.body),
            }
        )
    return steps


def without_repeats(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps without questions that were just answered; each resource keeps one of each."""
    kept: list[dict[str, Any]] = []
    answered: set[str] = set()
    asked: set[tuple[str, str, str]] = set()
    for step in steps:
        if not step["action"].startswith(("Describe", "Get")):
            answered.clear()
        told = json.dumps([step["action"], step["parameters"], step["answer"]], sort_keys=True)
        who = (step["resource"], step["phase"], step["action"])
        if told not in answered or who not in asked:
            kept.append(step)
        answered.add(told)
        asked.add(who)
    return kept


def record(theme: str, url: str, keys: tuple[str, str], home: Path) -> list[dict[str, Any]]:
    """Runs Terraform on a theme and returns the steps."""
    alone = "-parallelism=1"
    with listening(url) as (front, calls):
        terraform = Terraform(home, front, keys, [theme])
        trouble = terraform.init()
        if trouble:
            raise SystemExit(trouble)
        unlike = ""
        events = terraform.apply(1, alone)
        events += terraform.refresh(1, alone)
        made = len(calls)
        unlike += terraform.differences(1)
        del calls[made:]
        events += terraform.apply(2, alone)
        made = len(calls)
        unlike += terraform.differences(2)
        del calls[made:]
        events += terraform.destroy(2, alone)
        if unlike:
            raise SystemExit(unlike)
        return without_repeats(steps_of(events, calls))


def main(names: Sequence[str]) -> None:
    """Records themes, each on a project and a database of its own."""
    cloud = CloudEnv(Path(os.environ["TRIMARAN_SANDBOX"]))
    for name in names:
        with tempfile.TemporaryDirectory() as place, tenant(cloud) as mine:
            home = Path(place)
            url = f"sqlite:///{home}/ec2.sqlite"
            migrate.upgrade(url, "ec2")
            port = free_port()
            conf = write_conf(home, cloud, url, ec2api_listen_port=port)
            (home / "terraform").mkdir()
            with running("ec2-api", conf, port) as daemon:
                steps = record(name, daemon.url, mine.keys, home / "terraform")
        path = THEMES / f"{name}.json"
        path.write_text(json.dumps(steps, indent=1, sort_keys=True) + "\n")
        print(f"{path.name}: {len(steps)} calls")


if __name__ == "__main__":
    main(sys.argv[1:])
