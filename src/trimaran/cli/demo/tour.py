"""The tour: real clients against the three services, one step after another.

Each step prints the command that it runs and the answer that it got; a step
that fails ends the tour with the client's own words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

CLUSTER = "tour-cluster"
TEMPLATE = "tour-template"
CLUSTER_SECONDS = 600.0

BOTO3 = """\
import boto3, os
ec2 = boto3.client("ec2", endpoint_url=os.environ["EC2_URL"])
image = ec2.describe_images(Filters=[{"Name": "name", "Values": ["ubuntu*"]}])["Images"][0]
made = ec2.run_instances(
    ImageId=image["ImageId"], InstanceType="m1.tiny", MinCount=1, MaxCount=1,
    TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "tour"}]}],
)
name = made["Instances"][0]["InstanceId"]
print("started    ", name, "from", image["ImageId"], image["Name"])
ec2.get_waiter("instance_running").wait(InstanceIds=[name], WaiterConfig={"Delay": 1})
found = ec2.describe_instances(InstanceIds=[name])["Reservations"][0]["Instances"][0]
print("described  ", found["State"]["Name"], found["PrivateIpAddress"], found["Tags"])
ec2.terminate_instances(InstanceIds=[name])
ec2.get_waiter("instance_terminated").wait(InstanceIds=[name], WaiterConfig={"Delay": 1})
print("terminated ", name)
"""

LOGIN = """\
import json, os, requests
api = os.environ["CONSOLE_URL"] + "/api/v1"
web = requests.Session()
web.post(api + "/login", json={"username": os.environ["OS_USERNAME"],
    "password": os.environ["OS_PASSWORD"], "domain": "Default"}, timeout=60).raise_for_status()
profile = web.get(api + "/profile", timeout=60).json()
print("logged in as", profile["user"]["name"], "in project", profile["project"]["name"])
print("roles       ", ", ".join(role["name"] for role in profile["roles"]))
print("endpoints   ", ", ".join(sorted(profile["endpoints"])))
web.post(api + "/logout", timeout=60).raise_for_status()
print("logged out; the profile now answers", web.get(api + "/profile", timeout=60).status_code)
"""


class Tour:
    """Runs commands as the demo member and shows them.

    Args:
        env: the demo's variables.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        self.env.update(env)
        tools = str(Path(sys.executable).parent)
        self.env["PATH"] = tools + os.pathsep + self.env.get("PATH", "")
        self.env.pop("PYTHONWARNINGS", None)

    def title(self, text: str) -> None:
        click.secho(f"\n== {text}", bold=True)

    def run(self, *command: str, show: bool = True) -> str:
        """Run one client's command; its output.

        Raises:
            click.ClickException: the command failed.
        """
        if show:
            click.echo(f"$ {' '.join(command)}")
        said = self._client(command, f"the tour stopped at: {' '.join(command)}")
        if show and said.strip():
            click.echo(said.rstrip())
        return said

    def script(self, text: str) -> None:
        """Run a few lines of Python and show both the lines and what they print."""
        click.echo("$ python - <<'END'\n" + text + "END")
        click.echo(self._client([sys.executable, "-"], "the tour stopped:", text).rstrip())

    def _client(self, command: Sequence[str], complaint: str, text: str | None = None) -> str:
        done = subprocess.run(
            command,
            input=text,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise click.ClickException(f"{complaint}\n{done.stdout}{done.stderr}".rstrip())
        return done.stdout

    def coe(self, *words: str, show: bool = True) -> str:
        """Run ``openstack coe …``."""
        return self.run("openstack", "coe", *words, show=show)


def _cluster_status(tour: Tour) -> str | None:
    listed = tour.coe("cluster", "list", "-f", "value", "-c", "name", "-c", "status", show=False)
    for line in listed.splitlines():
        name, _, status = line.partition(" ")
        if name == CLUSTER:
            return status.strip()
    return None


def _containers(tour: Tour) -> None:
    tour.title("Magnum: openstack coe makes a cluster")
    templates = tour.coe("cluster", "template", "list", "-f", "value", "-c", "name", show=False)
    if TEMPLATE not in templates.split():
        tour.coe(
            *("cluster", "template", "create", TEMPLATE, "--coe", "kubernetes"),
            *("--image", "ubuntu-24.04", "--external-network", "public"),
            *("--flavor", "m1.small", "--master-flavor", "m1.small"),
            *("-f", "value", "-c", "uuid"),
        )
    status = _cluster_status(tour)
    if status and status.endswith("FAILED"):
        tour.coe("cluster", "delete", CLUSTER)
        while _cluster_status(tour):
            time.sleep(2)
        status = None
    if status is None:
        tour.coe(
            *("cluster", "create", CLUSTER, "--cluster-template", TEMPLATE),
            *("--master-count", "1", "--node-count", "1"),
        )
    begin = time.monotonic()
    while True:
        status = _cluster_status(tour) or ""
        if status.endswith(("COMPLETE", "FAILED")):
            break
        if time.monotonic() - begin > CLUSTER_SECONDS:
            raise click.ClickException(f"the cluster is still {status or 'not there'}")
        click.echo(f"  {status or 'accepted'} after {time.monotonic() - begin:.0f} s")
        time.sleep(3)
    tour.coe(
        *("cluster", "show", CLUSTER, "-c", "name", "-c", "status", "-c", "status_reason"),
        *("-c", "node_count", "-c", "master_count", "-c", "coe_version"),
    )
    if status.endswith("FAILED"):
        raise click.ClickException("the cluster failed; the reason is above.")
    tour.run("openstack", "server", "list", "-c", "Name", "-c", "Status", "-c", "Networks")


def run(env: Mapping[str, str]) -> None:
    """Take the tour.

    Args:
        env: the demo's variables.

    Raises:
        click.ClickException: a client failed.
    """
    tour = Tour(env)
    tour.title("Console: log in, read the profile, log out")
    tour.script(LOGIN)
    tour.title("EC2: boto3 runs, describes and terminates an instance")
    tour.script(BOTO3)
    if shutil.which("aws", path=tour.env["PATH"]):
        tour.run(
            *("aws", "ec2", "describe-regions", "--endpoint-url", env["EC2_URL"]),
            *("--output", "text"),
        )
    _containers(tour)
