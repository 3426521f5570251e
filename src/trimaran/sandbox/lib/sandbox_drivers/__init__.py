"""Drivers that let real OpenStack services run without a switch or a disk array."""
