"""What a guest sees: IMDSv2 by curl, and the crawl of cloud-init, as a page of Markdown.

    python -m benchmarks.ec2_guest --state .sandbox > docs/ec2-guest.md

The EC2 API and the metadata service run as daemons in front of the sandbox, a
server of the demo project asks through a proxy that does what Neutron's agent
does.  Ids, addresses and tokens are those of the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.cloud import DEMO, CloudEnv
from tests.support.cloud_init import crawl
from tests.support.ec2 import keys_of, running, write_conf
from tests.support.ec2_server import server_with_key
from tests.support.metadata_agent import agent, agents_headers
from tests.support.ports import free_port
from trimaran.db import migrate

SECRET = "s3cret"
USER_DATA = b"#cloud-config\nfinal_message: hello\n"
PUT = "curl -s -X PUT $IMDS/latest/api/token"
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
GET = "curl -s -w '\\n(%{http_code})'"
TOKEN = "X-aws-ec2-metadata-token: $TOKEN"


def shell(commands: str, **env: str) -> None:
    """Prints commands with their output, one shell for all."""
    lines = [line for line in commands.strip().split("\n") if line]
    script = "\n".join(f"printf '%s\\n' {_quoted('$ ' + line)}\n{line}\necho" for line in lines)
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "no_proxy": "127.0.0.1", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    text = "\n".join(line for line in done.stdout.split("\n") if line.strip())
    print(f"```console\n{text}\n```\n")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def transcripts(cloud: CloudEnv, home: Path) -> None:
    """Prints the page."""
    database = f"sqlite:///{home}/ec2.sqlite"
    migrate.upgrade(database, "ec2")
    ports = free_port(), free_port()
    conf = write_conf(
        home, cloud, database, metadata_listen_port=ports[0], ec2api_listen_port=ports[1]
    )
    project = cloud.session(DEMO).get_project_id()
    with (
        server_with_key(cloud, USER_DATA) as server,
        running("ec2-metadata", conf, ports[0]) as metadata,
        running("ec2-api", conf, ports[1]) as api,
        agent(metadata.url, agents_headers(server["id"], str(project), SECRET)) as guest,
    ):
        print("# A guest's view of the metadata service\n")
        print("Made by `python -m benchmarks.ec2_guest`; ids and tokens are those of the run.")
        print("\n## IMDSv2\n")
        shell(
            f"""
TOKEN=$({PUT} -H '{TTL}: 60'); echo "$TOKEN"
{GET} -H "{TOKEN}" $IMDS/latest/meta-data/instance-id
{GET} $IMDS/latest/meta-data/instance-id
{GET} -H "X-aws-ec2-metadata-token: ${{TOKEN}}x" $IMDS/latest/meta-data/instance-id
{GET} -X PUT $IMDS/latest/api/token
{GET} -X PUT $IMDS/latest/api/token -H '{TTL}: 21601'
TOKEN=$({PUT} -H '{TTL}: 1'); sleep 2; {GET} -H "{TOKEN}" $IMDS/latest/meta-data/instance-id
""",
            IMDS=guest.url,
        )
        ec2 = api.client(keys_of(cloud))
        instance_id = _instance(ec2, server)
        print("With `HttpTokens=required` for this instance:\n")
        ec2.modify_instance_metadata_options(
            InstanceId=instance_id, HttpTokens="required", InstanceMetadataTags="enabled"
        )
        ec2.create_tags(Resources=[instance_id], Tags=[{"Key": "Name", "Value": "guest"}])
        shell(
            f"""
sleep 1; {GET} $IMDS/latest/meta-data/instance-id
TOKEN=$({PUT} -H '{TTL}: 60'); {GET} -H "{TOKEN}" $IMDS/latest/meta-data/tags/instance/Name
{GET} -H "{TOKEN}" $IMDS/latest/dynamic/instance-identity/document
""",
            IMDS=guest.url,
        )
        print("## cloud-init\n")
        print("Debian's `cloud-init`, its Ec2 data source, as on AWS (session tokens required):\n")
        guest.answers.clear()
        mac = str(server["addresses"]["private"][0]["OS-EXT-IPS-MAC:mac_addr"])
        seen = crawl(guest.url, "aws", mac)
        print("```console")
        print("\n".join(f"{method} {path} {status}" for method, path, status in guest.answers))
        print("```\n")
        found = seen.found
        print(
            f"Complaints: {seen.complaints or 'none'}. Version: {found['_metadata_api_version']}."
        )
        print(f"User data: `{bytes(found['user-data'])!r}`. Network: `{found['config']}`.")


def _instance(ec2: Any, server: dict[str, Any]) -> str:
    address = server["addresses"]["private"][0]["addr"]
    only = [{"Name": "private-ip-address", "Values": [address]}]
    [reservation] = ec2.describe_instances(Filters=only)["Reservations"]
    return str(reservation["Instances"][0]["InstanceId"])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="A guest's view of the metadata service.")
    parser.add_argument("--state", type=Path, default=Path(".sandbox"))
    with tempfile.TemporaryDirectory() as home:
        transcripts(CloudEnv(parser.parse_args().state), Path(home))


if __name__ == "__main__":
    main()
