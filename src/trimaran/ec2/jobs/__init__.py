"""What goes on after a request, or after the death of the process that had it.

One runner in each process of the EC2 API; any of them finishes what any other
one began (`trimaran.work`).
"""

from __future__ import annotations

from trimaran.ec2.jobs.crew import Crew

__all__ = ["Crew"]
