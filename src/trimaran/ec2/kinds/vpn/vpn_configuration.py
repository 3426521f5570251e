"""The customer's side of a VPN connection as XML, which clients read from the connection.

The document's form is ec2-api's (spec ec2.md 3.18).  Its one tunnel is there
twice: AWS has two, and Terraform's provider ends in a panic when there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from trimaran.db.queries.ec2 import Item
from trimaran.ec2.kinds.vpn import vpn_items as names
from trimaran.ec2.kinds.vpn.vpn_sync import MTU

Row = Mapping[str, Any]

#: IP and TCP headers.
_HEADERS = 40
_TUNNELS = 2


def configuration(connection: Item, customer: str, gateway: str, ike: Row, ipsec: Row) -> str:
    """The document.

    Args:
        connection: the connection's item.
        customer: the customer gateway's address.
        gateway: our side's address, or "" while there is none.
        ike: Neutron's IKE policy.
        ipsec: Neutron's IPsec policy.
    """
    root = ElementTree.Element("vpn_connection", id=connection.id)
    _add(root, "customer_gateway_id", connection.data.get(names.OF_CUSTOMER))
    _add(root, "vpn_gateway_id", connection.data.get(names.OF_GATEWAY))
    _add(root, "vpn_connection_type", names.TYPE)
    _add(root, "vpn_connection_attributes", "NoBGPVPNConnection")
    secret = connection.data.get(names.SECRET) or ike.get("description")
    for _ in range(_TUNNELS):
        tunnel = ElementTree.SubElement(root, "ipsec_tunnel")
        for name, address in (("customer_gateway", customer), ("vpn_gateway", gateway)):
            end = ElementTree.SubElement(tunnel, name)
            outside = ElementTree.SubElement(end, "tunnel_outside_address")
            _add(outside, "ip_address", address)
        phase = ElementTree.SubElement(tunnel, "ike")
        _add(phase, "authentication_protocol", ike.get("auth_algorithm"))
        _add(phase, "encryption_protocol", ike.get("encryption_algorithm"))
        _add(phase, "lifetime", (ike.get("lifetime") or {}).get("value"))
        _add(phase, "perfect_forward_secrecy", ike.get("pfs"))
        _add(phase, "mode", ike.get("phase1_negotiation_mode"))
        _add(phase, "pre_shared_key", secret)
        phase = ElementTree.SubElement(tunnel, "ipsec")
        _add(phase, "protocol", ipsec.get("transform_protocol"))
        _add(phase, "authentication_protocol", ipsec.get("auth_algorithm"))
        _add(phase, "encryption_protocol", ipsec.get("encryption_algorithm"))
        _add(phase, "lifetime", (ipsec.get("lifetime") or {}).get("value"))
        _add(phase, "perfect_forward_secrecy", ipsec.get("pfs"))
        _add(phase, "mode", ipsec.get("encapsulation_mode"))
        _add(phase, "tcp_mss_adjustment", MTU - _HEADERS)
    return ElementTree.tostring(root, encoding="unicode")


def _add(parent: ElementTree.Element, name: str, value: Any) -> None:
    ElementTree.SubElement(parent, name).text = "" if value is None else str(value)
