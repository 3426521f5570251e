# Volumes, snapshots, images of them and keys; step 2 changes what can be changed in place.
variable "step" {}

data "aws_ami" "small" {
  most_recent = true
  filter {
    name   = "name"
    values = ["cirros-*"]
  }
}

data "aws_availability_zones" "all" {}

resource "aws_key_pair" "ours" {
  key_name   = "terraform-storage"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f us@example.org"
  tags       = { Name = "step-${var.step}" }
}

resource "aws_ebs_volume" "growing" {
  availability_zone = data.aws_availability_zones.all.names[0]
  size              = var.step
  type              = var.step == 2 ? "gp3" : "gp2"
  tags              = { Name = "step-${var.step}" }
}

resource "aws_vpc" "main" {
  cidr_block = "10.50.0.0/16"
}

resource "aws_subnet" "one" {
  vpc_id     = aws_vpc.main.id
  cidr_block = "10.50.1.0/24"
}

# A volume with a system on it, which AWS's API makes of an image in no other way.
resource "aws_instance" "first" {
  ami           = data.aws_ami.small.id
  instance_type = "cirros256"
  subnet_id     = aws_subnet.one.id
  private_ip    = "10.50.1.10"
  ebs_block_device {
    device_name = "/dev/vda"
    volume_size = 1
  }
  lifecycle {
    # It is the root device then, and read as such.
    ignore_changes = [ebs_block_device]
  }
}

resource "aws_ebs_snapshot" "of_source" {
  volume_id   = aws_instance.first.root_block_device[0].volume_id
  description = "what the others are made from"
  tags        = { Name = "step-${var.step}" }
}

resource "aws_ebs_volume" "restored" {
  availability_zone = data.aws_availability_zones.all.names[0]
  snapshot_id       = aws_ebs_snapshot.of_source.id
}

resource "aws_ami" "of_snapshot" {
  name                = "terraform-storage"
  description         = "step ${var.step}"
  virtualization_type = "hvm"
  root_device_name    = "/dev/vda"
  ebs_block_device {
    device_name = "/dev/vda"
    snapshot_id = aws_ebs_snapshot.of_source.id
    volume_type = "gp3"
  }
  ebs_block_device {
    device_name           = "/dev/vdb"
    volume_size           = 1
    delete_on_termination = true
  }
  tags = { Name = "step-${var.step}" }
}

resource "aws_ami_copy" "of_another" {
  name              = "terraform-storage-copy"
  description       = "step ${var.step}"
  source_ami_id     = data.aws_ami.small.id
  source_ami_region = "RegionOne"
  tags              = { Name = "step-${var.step}" }
}

resource "aws_instance" "on_volumes" {
  ami           = aws_ami.of_snapshot.id
  instance_type = "cirros256"
  key_name      = aws_key_pair.ours.key_name
  subnet_id     = aws_subnet.one.id
  private_ip    = "10.50.1.20"
  root_block_device {
    volume_size = var.step
    volume_type = "gp3"
  }
  tags = { Name = "step-${var.step}" }
}

resource "aws_volume_attachment" "growing" {
  device_name                    = "/dev/sdf"
  instance_id                    = aws_instance.on_volumes.id
  volume_id                      = aws_ebs_volume.growing.id
  stop_instance_before_detaching = true
}

resource "aws_ami_from_instance" "of_all" {
  name               = "terraform-storage-of-instance"
  source_instance_id = aws_instance.on_volumes.id
  tags               = { Name = "step-${var.step}" }
  depends_on         = [aws_volume_attachment.growing]
}

data "aws_ebs_volume" "attached" {
  filter {
    name   = "attachment.instance-id"
    values = [aws_volume_attachment.growing.instance_id]
  }
  filter {
    name   = "attachment.device"
    values = [aws_volume_attachment.growing.device_name]
  }
}

data "aws_ebs_volumes" "restored" {
  filter {
    name   = "snapshot-id"
    values = [aws_ebs_volume.restored.snapshot_id]
  }
  filter {
    name   = "volume-id"
    values = [aws_ebs_volume.restored.id]
  }
}

data "aws_ebs_snapshot" "of_source" {
  owners      = ["self"]
  most_recent = true
  filter {
    name   = "volume-id"
    values = [aws_ebs_snapshot.of_source.volume_id]
  }
}

data "aws_ebs_snapshot_ids" "of_source" {
  owners = ["self"]
  filter {
    name   = "volume-id"
    values = [aws_ebs_snapshot.of_source.volume_id]
  }
}

data "aws_ami" "of_snapshot" {
  owners = ["self"]
  filter {
    name   = "name"
    values = [aws_ami.of_snapshot.name]
  }
}

data "aws_key_pair" "ours" {
  key_pair_id        = aws_key_pair.ours.key_pair_id
  include_public_key = true
}
