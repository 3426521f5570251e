# A VPN to a customer's network; step 2 changes what can be changed in place.
variable "step" {}

resource "aws_vpc" "main" {
  cidr_block = "10.40.0.0/16"
}

resource "aws_subnet" "one" {
  vpc_id     = aws_vpc.main.id
  cidr_block = "10.40.1.0/24"
}

resource "aws_customer_gateway" "office" {
  bgp_asn    = 65000
  ip_address = "198.51.100.77"
  type       = "ipsec.1"
  tags       = { Name = "step-${var.step}" }
}

resource "aws_vpn_gateway" "ours" {
  tags = { Name = "step-${var.step}" }
}

resource "aws_vpn_gateway_attachment" "ours" {
  vpc_id         = aws_vpc.main.id
  vpn_gateway_id = aws_vpn_gateway.ours.id
}

resource "aws_vpn_gateway" "inside" {
  vpc_id = aws_vpc.other.id
}

resource "aws_vpc" "other" {
  cidr_block = "10.41.0.0/16"
}

resource "aws_vpn_connection" "office" {
  vpn_gateway_id      = aws_vpn_gateway.ours.id
  customer_gateway_id = aws_customer_gateway.office.id
  type                = "ipsec.1"
  static_routes_only  = true
  # A known one, so that two runs can be compared.
  tunnel1_preshared_key = "of.two_ends"
  tags                  = { Name = "step-${var.step}" }
}

resource "aws_vpn_connection_route" "office" {
  vpn_connection_id      = aws_vpn_connection.office.id
  destination_cidr_block = "172.16.${var.step}.0/24"
}

resource "aws_route_table" "own" {
  vpc_id           = aws_vpc.main.id
  propagating_vgws = var.step == 2 ? [] : [aws_vpn_gateway.ours.id]
  depends_on       = [aws_vpn_gateway_attachment.ours]
}

resource "aws_route_table_association" "own" {
  subnet_id      = aws_subnet.one.id
  route_table_id = aws_route_table.own.id
}

resource "aws_route_table" "propagated" {
  vpc_id = aws_vpc.main.id
  lifecycle {
    ignore_changes = [propagating_vgws]
  }
}

resource "aws_vpn_gateway_route_propagation" "propagated" {
  vpn_gateway_id = aws_vpn_gateway.ours.id
  route_table_id = aws_route_table.propagated.id
  depends_on     = [aws_vpn_gateway_attachment.ours]
}

data "aws_customer_gateway" "office" {
  filter {
    name   = "ip-address"
    values = [aws_customer_gateway.office.ip_address]
  }
}

data "aws_vpn_gateway" "attached" {
  attached_vpc_id = aws_vpc.main.id
  depends_on      = [aws_vpn_gateway_attachment.ours]
}
