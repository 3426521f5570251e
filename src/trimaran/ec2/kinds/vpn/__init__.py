"""VPN gateways, customer gateways and the connections between them."""
