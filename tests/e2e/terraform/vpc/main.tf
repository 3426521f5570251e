# A VPC with its parts; step 2 changes what can be changed in place.
variable "step" {}

resource "aws_vpc" "main" {
  cidr_block           = "10.20.0.0/16"
  enable_dns_hostnames = var.step == 2
  tags                 = { Name = "step-${var.step}" }
}

resource "aws_subnet" "one" {
  vpc_id                  = aws_vpc.main.id
  cidr_block              = "10.20.1.0/24"
  map_public_ip_on_launch = var.step == 2
  tags                    = { Name = "step-${var.step}" }
}

resource "aws_internet_gateway" "way_out" {
  vpc_id = aws_vpc.main.id
  tags   = { Name = "step-${var.step}" }
}

resource "aws_route_table" "own" {
  vpc_id = aws_vpc.main.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.way_out.id
  }
  dynamic "route" {
    for_each = var.step == 2 ? ["192.168.2.0/24"] : []
    content {
      cidr_block = route.value
      gateway_id = aws_internet_gateway.way_out.id
    }
  }
  tags = { Name = "step-${var.step}" }
}

resource "aws_route_table" "main" {
  vpc_id = aws_vpc.main.id
}

resource "aws_route_table_association" "one" {
  subnet_id      = aws_subnet.one.id
  route_table_id = var.step == 2 ? aws_route_table.main.id : aws_route_table.own.id
}

resource "aws_main_route_table_association" "main" {
  vpc_id         = aws_vpc.main.id
  route_table_id = aws_route_table.main.id
}

resource "aws_route" "elsewhere" {
  route_table_id         = aws_route_table.main.id
  destination_cidr_block = "192.168.${var.step}.0/24"
  gateway_id             = aws_internet_gateway.way_out.id
}

resource "aws_vpc_dhcp_options" "names" {
  domain_name         = "example.org"
  domain_name_servers = ["AmazonProvidedDNS"]
  ntp_servers         = ["192.0.2.1", "192.0.2.2"]
  tags                = { Name = "step-${var.step}" }
}

resource "aws_vpc_dhcp_options_association" "main" {
  vpc_id          = aws_vpc.main.id
  dhcp_options_id = aws_vpc_dhcp_options.names.id
}

data "aws_subnets" "inside" {
  filter {
    name   = "vpc-id"
    values = [aws_vpc.main.id]
  }
  depends_on = [aws_subnet.one]
}

data "aws_route_table" "of_subnet" {
  subnet_id  = aws_subnet.one.id
  depends_on = [aws_route_table_association.one]
}

data "aws_internet_gateway" "attached" {
  filter {
    name   = "attachment.vpc-id"
    values = [aws_vpc.main.id]
  }
  depends_on = [aws_internet_gateway.way_out]
}
