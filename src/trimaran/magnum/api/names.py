"""Names for what the caller did not name: a Greek letter and a number."""

from __future__ import annotations

import random

_LETTERS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "omicron",
    "pi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "chi",
    "psi",
    "omega",
]


def generate(kind: str) -> str:
    """A name such as ``zeta-22-cluster``.

    Args:
        kind: its last word.
    """
    return f"{random.choice(_LETTERS)}-{random.randint(1, 24)}-{kind}"  # noqa: S311 - no secret
