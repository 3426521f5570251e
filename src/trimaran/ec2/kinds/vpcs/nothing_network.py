"""Things of AWS's networks that Neutron has none of: see `nothing`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlalchemy.orm import Session

from trimaran.db.queries import ec2_tags as tag_queries
from trimaran.db.queries.ec2 import Item
from trimaran.ec2 import ids
from trimaran.ec2.context import Context
from trimaran.ec2.kinds import nothing
from trimaran.ec2.kinds.security_groups.security_group_lookup import groups_by_ids
from trimaran.ec2.kinds.vpcs.vpc_kind import STAGE, one_vpc, vpc_items
from trimaran.ec2.protocol import filters, paging
from trimaran.ec2.protocol.errors import missing

Request = Mapping[str, Any]

none_of = partial(nothing.none_of, module=__name__)

describe_address_transfers = none_of(
    "AddressTransfers", "InvalidAllocationID.NotFound", "AllocationIds"
)
describe_byoip_cidrs = none_of("ByoipCidrs")
describe_carrier_gateways = none_of(
    "CarrierGateways",
    "InvalidCarrierGatewayID.NotFound",
    "CarrierGatewayIds",
    names="carrier-gateway-id owner-id state vpc-id",
)
describe_classic_link_instances = none_of(
    "Instances",
    "InvalidInstanceID.NotFound",
    "InstanceIds",
    names="group-id instance-id vpc-id",
)
describe_client_vpn_endpoints = none_of(
    "ClientVpnEndpoints",
    "InvalidClientVpnEndpointId.NotFound",
    "ClientVpnEndpointIds",
    names="endpoint-id transport-protocol",
)
describe_coip_pools = none_of(
    "CoipPools",
    "InvalidPoolID.NotFound",
    "PoolIds",
    names="coip-pool.local-gateway-route-table-id coip-pool.pool-id",
)
describe_flow_logs = none_of(
    "FlowLogs",
    "InvalidFlowLogId.NotFound",
    "FlowLogIds",
    names="deliver-log-status flow-log-id log-destination-type log-group-name resource-id "
    "traffic-type",
)
describe_instance_connect_endpoints = none_of(
    "InstanceConnectEndpoints",
    "InvalidInstanceConnectEndpointId.NotFound",
    "InstanceConnectEndpointIds",
    names="instance-connect-endpoint-id state subnet-id vpc-id",
)
describe_ipam_pools = none_of(
    "IpamPools", "InvalidIpamPoolId.NotFound", "IpamPoolIds", open_names=True
)
describe_ipams = none_of("Ipams", "InvalidIpamId.NotFound", "IpamIds", open_names=True)
describe_ipv6_pools = none_of("Ipv6Pools", "InvalidPoolID.NotFound", "PoolIds")
describe_local_gateways = none_of(
    "LocalGateways",
    "InvalidLocalGatewayID.NotFound",
    "LocalGatewayIds",
    names="local-gateway-id outpost-arn owner-id state",
)
describe_managed_prefix_lists = none_of(
    "PrefixLists",
    "InvalidPrefixListID.NotFound",
    "PrefixListIds",
    names="owner-id prefix-list-id prefix-list-name",
)
describe_moving_addresses = none_of(
    "MovingAddressStatuses",
    "InvalidAddress.NotFound",
    "PublicIps",
    names="moving-status",
    tags=False,
)
describe_nat_gateways = none_of(
    "NatGateways",
    "NatGatewayNotFound",
    "NatGatewayIds",
    names="nat-gateway-id state subnet-id vpc-id",
)
describe_network_insights_analyses = none_of(
    "NetworkInsightsAnalyses",
    "InvalidNetworkInsightsAnalysisId.NotFound",
    "NetworkInsightsAnalysisIds",
    "NetworkInsightsPathId",
    open_names=True,
)
describe_network_insights_paths = none_of(
    "NetworkInsightsPaths",
    "InvalidNetworkInsightsPathId.NotFound",
    "NetworkInsightsPathIds",
    open_names=True,
)
describe_network_interface_permissions = none_of(
    "NetworkInterfacePermissions",
    "InvalidPermissionID.NotFound",
    "NetworkInterfacePermissionIds",
    names="network-interface-permission.aws-account-id network-interface-permission.aws-service "
    "network-interface-permission.network-interface-id "
    "network-interface-permission.network-interface-permission-id "
    "network-interface-permission.permission",
    tags=False,
)
describe_prefix_lists = none_of(
    "PrefixLists",
    "InvalidPrefixListId",
    "PrefixListIds",
    names="prefix-list-id prefix-list-name",
    tags=False,
)
describe_public_ipv4_pools = none_of("PublicIpv4Pools", "InvalidPoolID.NotFound", "PoolIds")
describe_security_group_vpc_associations = none_of(
    "SecurityGroupVpcAssociations",
    names="group-id group-owner-id state vpc-id vpc-owner-id",
    tags=False,
)
describe_traffic_mirror_filters = none_of(
    "TrafficMirrorFilters",
    "InvalidTrafficMirrorFilterId.NotFound",
    "TrafficMirrorFilterIds",
    names="description traffic-mirror-filter-id",
)
describe_traffic_mirror_sessions = none_of(
    "TrafficMirrorSessions",
    "InvalidTrafficMirrorSessionId.NotFound",
    "TrafficMirrorSessionIds",
    names="description network-interface-id owner-id packet-length session-number "
    "traffic-mirror-filter-id traffic-mirror-session-id traffic-mirror-target-id "
    "virtual-network-id",
)
describe_traffic_mirror_targets = none_of(
    "TrafficMirrorTargets",
    "InvalidTrafficMirrorTargetId.NotFound",
    "TrafficMirrorTargetIds",
    names="description network-interface-id network-load-balancer-arn owner-id "
    "traffic-mirror-target-id",
)
describe_transit_gateway_attachments = none_of(
    "TransitGatewayAttachments",
    "InvalidTransitGatewayAttachmentID.NotFound",
    "TransitGatewayAttachmentIds",
    names="association.state association.transit-gateway-route-table-id resource-id "
    "resource-owner-id resource-type state transit-gateway-attachment-id transit-gateway-id "
    "transit-gateway-owner-id",
)
describe_transit_gateway_peering_attachments = none_of(
    "TransitGatewayPeeringAttachments",
    "InvalidTransitGatewayAttachmentID.NotFound",
    "TransitGatewayAttachmentIds",
    names="local-owner-id remote-owner-id state transit-gateway-attachment-id transit-gateway-id",
)
describe_transit_gateway_route_tables = none_of(
    "TransitGatewayRouteTables",
    "InvalidRouteTableID.NotFound",
    "TransitGatewayRouteTableIds",
    names="default-association-route-table default-propagation-route-table state "
    "transit-gateway-id transit-gateway-route-table-id",
)
describe_transit_gateway_vpc_attachments = none_of(
    "TransitGatewayVpcAttachments",
    "InvalidTransitGatewayAttachmentID.NotFound",
    "TransitGatewayAttachmentIds",
    names="state transit-gateway-attachment-id transit-gateway-id vpc-id",
)
describe_transit_gateways = none_of(
    "TransitGateways",
    "InvalidTransitGatewayID.NotFound",
    "TransitGatewayIds",
    names="options.amazon-side-asn options.association-default-route-table-id "
    "options.auto-accept-shared-attachments options.default-route-table-association "
    "options.default-route-table-propagation options.dns-support "
    "options.propagation-default-route-table-id options.vpn-ecmp-support owner-id state "
    "transit-gateway-id",
)
describe_vpc_endpoint_connections = none_of(
    "VpcEndpointConnections",
    names="ip-address-type service-id transit-gateway-attachment-id vpc-endpoint-id "
    "vpc-endpoint-owner vpc-endpoint-region vpc-endpoint-state",
    tags=False,
)
describe_vpc_endpoint_service_configurations = none_of(
    "ServiceConfigurations",
    "InvalidVpcEndpointServiceId.NotFound",
    "ServiceIds",
    names="service-id service-name service-state supported-ip-address-types",
)
describe_vpc_endpoint_services = none_of(
    "ServiceDetails",
    "InvalidServiceName",
    "ServiceNames",
    names="owner service-name service-region service-type supported-ip-address-types",
)
describe_vpc_endpoints = none_of(
    "VpcEndpoints",
    "InvalidVpcEndpointId.NotFound",
    "VpcEndpointIds",
    names="ip-address-type service-name service-region vpc-endpoint-id vpc-endpoint-state "
    "vpc-endpoint-type vpc-id",
)
describe_vpc_peering_connections = none_of(
    "VpcPeeringConnections",
    "InvalidVpcPeeringConnectionID.NotFound",
    "VpcPeeringConnectionIds",
    names="accepter-vpc-info.cidr-block accepter-vpc-info.owner-id accepter-vpc-info.vpc-id "
    "expiration-time requester-vpc-info.cidr-block requester-vpc-info.owner-id "
    "requester-vpc-info.vpc-id status-code status-message vpc-peering-connection-id",
)


def describe_stale_security_groups(ctx: Context, request: Request) -> dict[str, Any]:
    """Rules are stale when they name groups behind a peering; there is none."""
    paging.Page(ctx.action, request)
    one_vpc(ctx, request.get("VpcId"))
    return {"StaleSecurityGroupSet": []}


def describe_security_group_references(ctx: Context, request: Request) -> dict[str, Any]:
    """VPCs behind a peering that name these groups: there is none."""
    if not request.get("GroupId"):
        raise missing("GroupId")
    groups_by_ids(ctx, request["GroupId"])
    return {"SecurityGroupReferenceSet": []}


def describe_vpc_classic_link(ctx: Context, request: Request) -> dict[str, Any]:
    """No VPC is linked to EC2-Classic."""
    table = {"is-classic-link-enabled": "ClassicLinkEnabled"}
    matches = filters.compile_filters(request.get("Filters"), table)

    def read(session: Session) -> tuple[list[Item], list[tag_queries.Tag]]:
        return vpc_items(session, ctx.project_id), tag_queries.tags_of(
            session, ctx.project_id, ["vpc"]
        )

    items, tags = ctx.db.read(read)
    rows = [
        {
            "VpcId": vpc_id,
            "ClassicLinkEnabled": False,
            "Tags": [{"Key": t.key, "Value": t.value} for t in tags if t.item_id == vpc_id],
        }
        for vpc_id in _chosen(request, items)
    ]
    return {"Vpcs": matches.apply(rows)}


def describe_vpc_classic_link_dns_support(ctx: Context, request: Request) -> dict[str, Any]:
    """No VPC is linked to EC2-Classic."""
    page = paging.Page(ctx.action, request, ids="VpcIds")
    chosen = _chosen(request, ctx.db.read(lambda s: vpc_items(s, ctx.project_id)))
    rows = [{"VpcId": vpc_id, "ClassicLinkDnsSupported": False} for vpc_id in chosen]
    shown, token = page.slice(rows, key=lambda row: str(row["VpcId"]))
    return {"Vpcs": shown, "NextToken": token}


def _chosen(request: Request, items: list[Item]) -> list[str]:
    there = {item.id for item in items if STAGE not in item.data}
    wanted = ids.check_ids(request.get("VpcIds"), "vpcId", "vpc")
    if absent := set(wanted) - there:
        raise ids.missing_ids(absent)
    return wanted or sorted(there)
