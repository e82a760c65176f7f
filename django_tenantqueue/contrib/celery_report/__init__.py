"""What a project's Celery tasks, schedules and calls become: `manage.py celeryreport`.

Nothing here imports Celery at the top: it is the project's own, and may be absent.
"""

from __future__ import annotations

from .calls import Finding, scan
from .report import Report, make_report
from .schedules import BeatEntry
from .tasks import CeleryTask

__all__ = ["BeatEntry", "CeleryTask", "Finding", "Report", "make_report", "scan"]
