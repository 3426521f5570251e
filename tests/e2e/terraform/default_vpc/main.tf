# What every project has: looked up, tagged, and left as it is.
variable "step" {}

resource "aws_default_vpc" "default" {
  tags = { Name = "step-${var.step}" }
}

resource "aws_default_subnet" "default" {
  availability_zone       = data.aws_availability_zones.all.names[0]
  map_public_ip_on_launch = true
  tags                    = { Name = "step-${var.step}" }
  depends_on              = [aws_default_vpc.default]
}

resource "aws_vpc" "other" {
  cidr_block = "10.30.0.0/16"
}

resource "aws_internet_gateway" "other" {
  vpc_id = aws_vpc.other.id
}

resource "aws_default_route_table" "other" {
  default_route_table_id = aws_vpc.other.default_route_table_id
  dynamic "route" {
    for_each = var.step == 2 ? ["0.0.0.0/0"] : []
    content {
      cidr_block = route.value
      gateway_id = aws_internet_gateway.other.id
    }
  }
  tags = { Name = "step-${var.step}" }
}

data "aws_availability_zones" "all" {}

data "aws_vpc" "default" {
  default    = true
  depends_on = [aws_default_vpc.default]
}
