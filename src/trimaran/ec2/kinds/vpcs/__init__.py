"""VPCs and what they are made of: subnets, routes, gateways, DHCP options."""
