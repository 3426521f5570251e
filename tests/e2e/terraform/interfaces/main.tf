# Interfaces, addresses and instances in a VPC; step 2 changes what can be changed in place.
variable "step" {}

data "aws_ami" "small" {
  most_recent = true
  filter {
    name   = "name"
    values = ["cirros-*"]
  }
}

resource "aws_vpc" "main" {
  cidr_block = "10.20.0.0/16"
}

resource "aws_subnet" "one" {
  vpc_id     = aws_vpc.main.id
  cidr_block = "10.20.1.0/24"
}

resource "aws_internet_gateway" "way_out" {
  vpc_id = aws_vpc.main.id
}

resource "aws_network_interface" "alone" {
  subnet_id         = aws_subnet.one.id
  description       = "step ${var.step}"
  private_ips       = var.step == 2 ? ["10.20.1.10", "10.20.1.12"] : ["10.20.1.10", "10.20.1.11"]
  source_dest_check = var.step == 1
  tags              = { Name = "step-${var.step}" }
}

resource "aws_instance" "in_subnet" {
  ami                         = data.aws_ami.small.id
  instance_type               = "cirros256"
  subnet_id                   = aws_subnet.one.id
  private_ip                  = "10.20.1.20"
  associate_public_ip_address = true
  source_dest_check           = var.step == 1
  tags                        = { Name = "step-${var.step}" }
  depends_on                  = [aws_internet_gateway.way_out]
}

resource "aws_network_interface" "second" {
  subnet_id = aws_subnet.one.id
  dynamic "attachment" {
    for_each = [aws_instance.in_subnet.id]
    content {
      instance     = attachment.value
      device_index = var.step
    }
  }
}

resource "aws_eip" "moving" {
  domain     = "vpc"
  tags       = { Name = "step-${var.step}" }
  depends_on = [aws_internet_gateway.way_out]
}

resource "aws_eip_association" "moving" {
  allocation_id        = aws_eip.moving.id
  allow_reassociation  = true
  network_interface_id = var.step == 2 ? aws_network_interface.second.id : aws_network_interface.alone.id
}

resource "aws_eip" "of_interface" {
  domain                    = "vpc"
  network_interface         = aws_network_interface.alone.id
  associate_with_private_ip = var.step == 2 ? "10.20.1.12" : "10.20.1.11"
  depends_on                = [aws_internet_gateway.way_out]
}

data "aws_network_interface" "alone" {
  id         = aws_network_interface.alone.id
  depends_on = [aws_eip_association.moving]
}

data "aws_instances" "here" {
  filter {
    name   = "vpc-id"
    values = [aws_vpc.main.id]
  }
  depends_on = [aws_instance.in_subnet]
}
