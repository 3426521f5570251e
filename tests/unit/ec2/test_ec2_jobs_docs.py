"""The page about EC2's jobs tells of every moment at which the tests disturb one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import ec2_moments

PAGE = Path(__file__).parents[3] / "docs" / "ec2-jobs.md"


@pytest.mark.parametrize("name", ["CREATE_IMAGE", "BUNDLE", "OUTAGES"])
def test_the_page_tells_of_every_moment(name: str) -> None:
    found = re.search(f"<!-- moments: {name} -->\n(.*?)\n<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert found, f"docs/ec2-jobs.md has lost its table {name}"
    rows = [line for line in found[1].split("\n")[2:] if line]
    told = [re.match(r"\| `([^`]+)`(?: \| `([^`]+)`)? \|", row) for row in rows]
    moments = getattr(ec2_moments, name)
    expected = [each if isinstance(each, tuple) else (each, None) for each in moments]
    assert [match and match.groups() for match in told] == expected
