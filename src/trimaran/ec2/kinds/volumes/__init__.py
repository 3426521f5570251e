"""Volumes and snapshots."""
