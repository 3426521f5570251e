"""The conductor: runs recorded operations, watches clusters, answers the API's calls."""

from __future__ import annotations
