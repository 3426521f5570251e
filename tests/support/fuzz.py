"""How tests that generate input are set."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

#: The same input each time.  The database keeps what an example has made, so a failure
#: is shown as it was found instead of being made smaller.
FEW = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
