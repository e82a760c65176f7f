"""Makes schedules.

The verbs of django_tenantqueue.control take their rows: pause, resume, run_now, tune, delete.
"""

from __future__ import annotations

from ...coroutines import twin
from .services import make_schedule

amake_schedule = twin(make_schedule)

__all__ = ["amake_schedule", "make_schedule"]
