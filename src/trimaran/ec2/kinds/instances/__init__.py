"""Instances, their launches and key pairs."""
