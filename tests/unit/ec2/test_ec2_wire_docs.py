"""The page about the EC2 service names the actions that are really there."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from trimaran.ec2 import actions

PAGE = Path(__file__).parents[3] / "docs" / "ec2.md"


def test_the_page_lists_every_action() -> None:
    found = re.search(r"<!-- actions: .*? -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert found, "docs/ec2.md has lost its list of actions"
    expected = textwrap.fill(", ".join(sorted(actions.implemented())), 80)
    assert found[1] == expected, f"docs/ec2.md should say:\n{expected}"
