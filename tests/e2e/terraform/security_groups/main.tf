# Security groups with rules in each of the provider's ways; step 2 changes them in place.
variable "step" {}

resource "aws_vpc" "main" {
  cidr_block = "10.30.0.0/16"
}

resource "aws_security_group" "inline" {
  name        = "inline"
  description = "rules inside the group"
  vpc_id      = aws_vpc.main.id
  ingress {
    description = "ssh, step ${var.step}"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = ["10.0.0.0/8", "192.0.2.0/24"]
  }
  ingress {
    protocol         = "tcp"
    from_port        = 0
    to_port          = var.step == 2 ? 80 : 65535
    ipv6_cidr_blocks = ["2001:db8::/32"]
  }
  ingress {
    protocol  = "-1"
    from_port = 0
    to_port   = 0
    self      = true
  }
  egress {
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }
  tags = { Name = "step-${var.step}" }
}

resource "aws_security_group" "plain" {
  name_prefix = "plain-"
  vpc_id      = aws_vpc.main.id
}

resource "aws_security_group_rule" "ping" {
  security_group_id = aws_security_group.plain.id
  type              = "ingress"
  protocol          = "icmp"
  from_port         = 8
  to_port           = -1
  cidr_blocks       = ["10.${var.step}.0.0/16"]
}

resource "aws_security_group_rule" "between" {
  security_group_id        = aws_security_group.plain.id
  type                     = "egress"
  protocol                 = "udp"
  from_port                = 53
  to_port                  = 53
  source_security_group_id = aws_security_group.inline.id
  description              = "names, step ${var.step}"
}

resource "aws_vpc_security_group_ingress_rule" "web" {
  security_group_id = aws_security_group.plain.id
  ip_protocol       = "tcp"
  from_port         = 80
  to_port           = var.step == 2 ? 81 : 80
  cidr_ipv4         = "0.0.0.0/0"
  description       = "step ${var.step}"
  tags              = { Name = "step-${var.step}" }
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.plain.id
  ip_protocol       = "-1"
  cidr_ipv4         = "10.${var.step}.0.0/16"
}

resource "aws_vpc_security_group_ingress_rule" "peer" {
  security_group_id            = aws_security_group.plain.id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
  referenced_security_group_id = aws_security_group.inline.id
}

resource "aws_default_security_group" "default" {
  vpc_id = aws_vpc.main.id
  ingress {
    protocol    = "tcp"
    from_port   = 443
    to_port     = 443
    cidr_blocks = ["10.${var.step}.0.0/16"]
  }
  tags = { Name = "step-${var.step}" }
}

data "aws_security_group" "by_name" {
  name       = "inline"
  vpc_id     = aws_vpc.main.id
  depends_on = [aws_security_group.inline]
}

data "aws_security_groups" "inside" {
  filter {
    name   = "vpc-id"
    values = [aws_vpc.main.id]
  }
  depends_on = [aws_security_group.inline, aws_security_group.plain]
}

data "aws_vpc_security_group_rule" "web" {
  security_group_rule_id = aws_vpc_security_group_ingress_rule.web.id
}

data "aws_network_acls" "inside" {
  vpc_id = aws_vpc.main.id
}
