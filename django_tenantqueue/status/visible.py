"""The jobs that a user may see and act on."""

from __future__ import annotations

from ..models import Job
from ..models.job import JobQuerySet


def visible_jobs(using: str, user: object | None) -> JobQuerySet:
    """Return the jobs that a user may see and change: all of them.

    `user` is None where code or a command acts. The pages of jobs and bulk actions read jobs from
    here, so that what limits a user here holds when a bulk action runs, too.
    """
    return Job.objects.using(using)
