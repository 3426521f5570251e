"""Trimaran: three OpenStack services (console, EC2, Magnum) on one shared deck."""

__version__ = "0.1.0"
