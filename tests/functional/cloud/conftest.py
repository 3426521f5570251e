"""The clients on the sandbox cloud."""

from __future__ import annotations

import pytest

from tests.support.cloud import CloudEnv
from trimaran.cloud import Cloud, CloudSession
from trimaran.config.common import defaults
from trimaran.identity import Identity, Token, from_password


@pytest.fixture(scope="session")
def identity(cloud_env: CloudEnv) -> Identity:
    return from_password(
        auth_url=cloud_env.auth_url,
        username="ec2api",
        password="password",
        project_name="service",
        own=defaults(),
        region=cloud_env.region,
    )


@pytest.fixture(scope="session")
def cloud(identity: Identity, cloud_env: CloudEnv) -> Cloud:
    return Cloud(identity, region=cloud_env.region)


def _token(identity: Identity, user: str, project: str) -> Token:
    scope = {"project": {"name": project, "domain": {"name": "Default"}}}
    return identity.password(username=user, password="password", domain_name="Default", scope=scope)


@pytest.fixture(scope="session")
def demo_token(identity: Identity) -> Token:
    return _token(identity, "demo", "demo")


@pytest.fixture
def demo(cloud: Cloud, demo_token: Token) -> CloudSession:
    return cloud.as_user(demo_token)


@pytest.fixture
def alt(cloud: Cloud, identity: Identity) -> CloudSession:
    return cloud.as_user(_token(identity, "alt_demo", "alt_demo"))


@pytest.fixture
def service(cloud: Cloud) -> CloudSession:
    return cloud.as_service()
