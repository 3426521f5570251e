"""The tables, one module a hull (and one for the deck's own).

A hull imports only its own module; the migration tree imports them all.
"""

from __future__ import annotations
