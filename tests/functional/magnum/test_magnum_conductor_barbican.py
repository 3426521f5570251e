"""Keys in a real Barbican, under our service's credentials."""

from __future__ import annotations

import pytest

from tests.support.cloud import CloudEnv
from trimaran import identity
from trimaran.cloud import Cloud
from trimaran.config.common import defaults
from trimaran.errors import NotFound, TrimaranError
from trimaran.magnum.certificates import KeyPair
from trimaran.magnum.certificates.managers import BarbicanManager

PAIR = KeyPair("CERTIFICATE", "KEY", "pass phrase")
GIVEN = {"name": "c", "proposal": "", "project_id": None, "user_id": None}


@pytest.fixture
def cloud(cloud_env: CloudEnv) -> Cloud:
    ours = identity.from_password(
        auth_url=cloud_env.auth_url,
        username="magnum",
        password="password",
        project_name="service",
        own=defaults(),
    )
    return Cloud(ours, region=cloud_env.region)


def stored(cloud: Cloud) -> tuple[set[str], set[str]]:
    keys = cloud.as_service().keys
    return (
        {row["container_ref"] for row in keys.containers()},
        {row["secret_ref"] for row in keys.secrets()},
    )


def test_a_key_pair_is_stored_read_and_removed_without_a_rest(cloud: Cloud) -> None:
    manager = BarbicanManager(cloud)
    before = stored(cloud)
    reference = manager.store(PAIR, **GIVEN)
    assert reference in stored(cloud)[0]
    assert manager.load(reference) == PAIR
    manager.delete(reference)
    manager.delete(reference)
    after = stored(cloud)
    assert reference not in after[0]
    assert after[1] - before[1] == set()
    with pytest.raises(NotFound):
        manager.load(reference)


def test_f24_a_failure_in_the_middle_leaves_no_secret(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trimaran.cloud.keys import Keys

    def refuse(_self: Keys, _body: object) -> str:
        raise TrimaranError("no containers today")

    before = stored(cloud)[1]
    with monkeypatch.context() as patch:
        patch.setattr(Keys, "create_container", refuse)
        with pytest.raises(TrimaranError, match="no containers today"):
            BarbicanManager(cloud).store(PAIR, **GIVEN)
    assert stored(cloud)[1] - before == set()
