"""The queries, one module an area: plain functions that take a session first.

They never begin, commit or roll back: the unit of work belongs to the caller
(``Database.read`` or ``Database.write``), which may run it more than once.
"""

from __future__ import annotations
