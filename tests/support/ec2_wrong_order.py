"""A topology that is taken down in its one right order, each wrong delete being tried before.

What a wrong delete is told is compared with what it should be, and afterwards
everything is as it was: in the cloud, and in what EC2 shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

IN_USE = "DependencyViolation"

#: An action by boto3's name of it, with its request.
Do = Callable[..., Any]
#: The code with which an action is refused; "" when it is not.
Refused = Callable[..., str]


@dataclass
class Topology:
    """A VPC in which everything depends on something.

    Args:
        do: runs an action.
        refused: runs an action that is to be refused.
        left: everything that is there, to be compared.
    """

    do: Do
    refused: Refused
    left: Callable[[], Any]
    ids: dict[str, str] = field(default_factory=dict)

    def build(self) -> None:
        """Makes all of it."""
        do, ids = self.do, self.ids
        ids["vpc"] = do("create_vpc", CidrBlock="10.77.0.0/16")["Vpc"]["VpcId"]
        made = do("create_subnet", VpcId=ids["vpc"], CidrBlock="10.77.1.0/24")
        ids["subnet"] = made["Subnet"]["SubnetId"]
        ids["igw"] = do("create_internet_gateway")["InternetGateway"]["InternetGatewayId"]
        do("attach_internet_gateway", InternetGatewayId=ids["igw"], VpcId=ids["vpc"])
        ids["table"] = do("create_route_table", VpcId=ids["vpc"])["RouteTable"]["RouteTableId"]
        route = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": ids["igw"]}
        do("create_route", RouteTableId=ids["table"], **route)
        made = do("associate_route_table", RouteTableId=ids["table"], SubnetId=ids["subnet"])
        ids["association"] = made["AssociationId"]
        for name in ("one", "two"):
            request = {"GroupName": name, "Description": "d", "VpcId": ids["vpc"]}
            ids[name] = do("create_security_group", **request)["GroupId"]
        # Each names the other: neither can go first.
        self._rule("authorize_security_group_ingress", "one", "two")
        self._rule("authorize_security_group_ingress", "two", "one")
        made = do("create_network_interface", SubnetId=ids["subnet"], Groups=[ids["one"]])
        ids["eni"] = made["NetworkInterface"]["NetworkInterfaceId"]
        ids["eip"] = do("allocate_address", Domain="vpc")["AllocationId"]
        made = do("associate_address", AllocationId=ids["eip"], NetworkInterfaceId=ids["eni"])
        ids["mapping"] = made["AssociationId"]
        values = [{"Key": "domain-name", "Values": ["example.org"]}]
        made = do("create_dhcp_options", DhcpConfigurations=values)
        ids["options"] = made["DhcpOptions"]["DhcpOptionsId"]
        do("associate_dhcp_options", DhcpOptionsId=ids["options"], VpcId=ids["vpc"])

    def _rule(self, action: str, of: str, source: str) -> None:
        pair = {"GroupId": self.ids[source]}
        rule = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "UserIdGroupPairs": [pair]}
        self.do(action, GroupId=self.ids[of], IpPermissions=[rule])

    def raze(self, *before: str) -> int:
        """Takes it down; returns how many wrong deletes were tried.

        Args:
            before: the steps before which wrong deletes are tried; all when none is named.

        Raises:
            AssertionError: a wrong delete was let through, or changed something.
        """
        ids = self.ids
        gateway = {"InternetGatewayId": ids["igw"], "VpcId": ids["vpc"]}
        default = "sg-" + ids["vpc"].removeprefix("vpc-")
        deletes: dict[str, tuple[str, dict[str, str]]] = {
            "vpc": ("delete_vpc", {"VpcId": ids["vpc"]}),
            "subnet": ("delete_subnet", {"SubnetId": ids["subnet"]}),
            "detach": ("detach_internet_gateway", gateway),
            "igw": ("delete_internet_gateway", {"InternetGatewayId": ids["igw"]}),
            "table": ("delete_route_table", {"RouteTableId": ids["table"]}),
            "one": ("delete_security_group", {"GroupId": ids["one"]}),
            "two": ("delete_security_group", {"GroupId": ids["two"]}),
            "default": ("delete_security_group", {"GroupId": default}),
            "options": ("delete_dhcp_options", {"DhcpOptionsId": ids["options"]}),
            "eip": ("release_address", {"AllocationId": ids["eip"]}),
            "eni": ("delete_network_interface", {"NetworkInterfaceId": ids["eni"]}),
            "mapping": ("disassociate_address", {"AssociationId": ids["mapping"]}),
            "association": ("disassociate_route_table", {"AssociationId": ids["association"]}),
        }
        codes = {"default": "CannotDelete", "eip": "InvalidIPAddress.InUse"}
        # What each step makes possible.
        steps: list[tuple[str, set[str]]] = [
            ("mapping", {"eip", "detach"}),
            ("eip", set()),
            ("detach", {"igw"}),
            ("igw", set()),
            ("eni", {"subnet"}),
            ("association", {"table"}),
            ("table", set()),
            ("subnet", set()),
            ("rules", {"one", "two"}),
            ("one", set()),
            ("two", {"vpc"}),
            ("vpc", {"options"}),
            ("options", set()),
        ]
        wrong = set(deletes) - {"mapping", "association", "eni"}
        tried = 0
        for step, freed in steps:
            if not before or step in before:
                there = self.left()
                for name in sorted(wrong - {step}):
                    action, request = deletes[name]
                    code = self.refused(action, **request)
                    assert code == codes.get(name, IN_USE), (step, name, code)
                    tried += 1
                assert self.left() == there, f"before {step}: a wrong delete changed something"
            if step == "rules":
                self._rule("revoke_security_group_ingress", "one", "two")
                self._rule("revoke_security_group_ingress", "two", "one")
            else:
                action, request = deletes[step]
                self.do(action, **request)
            wrong -= freed
            if step == "vpc":
                wrong -= {"default"}
        return tried
