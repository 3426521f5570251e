"""Neutron's VPN as a service (extension ``vpnaas``): the part of `Network` for clouds with it."""

from __future__ import annotations

from typing import Any

from trimaran.cloud.client import Client
from trimaran.cloud.wire import Query, Row


class VpnCalls(Client):
    """IKE and IPsec policies, VPN services of subnets, and their connections."""

    def ike_policies(self, **query: Any) -> list[Row]:
        """Returns all IKE policies that the caller may see and the filters let through."""
        return self.all("vpn/ikepolicies", "ikepolicies", query)

    def create_ike_policy(self, body: Query) -> Row:
        """Makes an IKE policy."""
        return self._create("vpn/ikepolicies", "ikepolicy", body)

    def delete_ike_policy(self, policy_id: str) -> None:
        """Deletes an IKE policy."""
        self._delete("vpn/ikepolicies", policy_id)

    def ipsec_policies(self, **query: Any) -> list[Row]:
        """Returns all IPsec policies that the caller may see and the filters let through."""
        return self.all("vpn/ipsecpolicies", "ipsecpolicies", query)

    def create_ipsec_policy(self, body: Query) -> Row:
        """Makes an IPsec policy."""
        return self._create("vpn/ipsecpolicies", "ipsecpolicy", body)

    def delete_ipsec_policy(self, policy_id: str) -> None:
        """Deletes an IPsec policy."""
        self._delete("vpn/ipsecpolicies", policy_id)

    def vpn_services(self, **query: Any) -> list[Row]:
        """Returns all VPN services that the caller may see and the filters let through."""
        return self.all("vpn/vpnservices", "vpnservices", query)

    def create_vpn_service(self, body: Query) -> Row:
        """Makes a VPN service of a router and a subnet."""
        return self._create("vpn/vpnservices", "vpnservice", body)

    def delete_vpn_service(self, service_id: str) -> None:
        """Deletes a VPN service."""
        self._delete("vpn/vpnservices", service_id)

    def ipsec_connections(self, **query: Any) -> list[Row]:
        """Returns all IPsec connections that the caller may see and the filters let through."""
        return self.all("vpn/ipsec-site-connections", "ipsec_site_connections", query)

    def create_ipsec_connection(self, body: Query) -> Row:
        """Makes an IPsec connection of a VPN service."""
        return self._create("vpn/ipsec-site-connections", "ipsec_site_connection", body)

    def update_ipsec_connection(self, connection_id: str, body: Query) -> Row:
        """Changes an IPsec connection."""
        return self._update(
            "vpn/ipsec-site-connections", "ipsec_site_connection", connection_id, body
        )

    def delete_ipsec_connection(self, connection_id: str) -> None:
        """Deletes an IPsec connection."""
        self._delete("vpn/ipsec-site-connections", connection_id)
