"""The jobs of a user, a tenant or a model instance, for a list on a customer's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from ..conf import get_settings
from ..coroutines import twin
from ..databases import database_of_tenant
from ..exceptions import InvalidArgument
from ..models import Job
from ..models.job_query import source_types, user_text
from ..queries.lists import NEWEST, JobFilter
from ..text import read_number
from .job_pages import find_jobs, queue_ids

HEAVY = ("args", "context", "result_data")
"""Columns that the list does not read: they may be large."""


@dataclass(frozen=True, slots=True)
class YourJob:
    """One job of the list; `title` and `url` may be empty."""

    job: Job
    title: str
    url: str

    @property
    def stats(self) -> list[tuple[str, Any]]:
        """The statistics of the job, by name; what is no dict is left out."""
        return list(self.job.stats.items()) if isinstance(self.job.stats, dict) else []


@dataclass(frozen=True, slots=True)
class YourJobs:
    """One page of the list, the newest first.

    `older` is the `before` of the next page, None at the end. `is_first`: the page begins at the
    newest job. `errors` and `stats`: what the template shows.
    """

    jobs: tuple[YourJob, ...]
    older: int | None
    is_first: bool
    errors: bool
    stats: bool


def your_jobs(
    *,
    user: object | None = None,
    tenant: str | None = None,
    source: Model | None = None,
    before: str | int | None = None,
    size: int = 20,
    titles: Mapping[str, str] | None = None,
    url_of: Callable[[Job], str] | None = None,
    errors: bool = False,
    stats: bool = False,
) -> YourJobs:
    """Return a page of at most `size` jobs for the template tenantqueue/your_jobs.html.

    `user`: the jobs with this `created_by` (a text, or a model instance: its primary key). The
    option `limit_user` of a job is something else: it limits how many jobs of a user run at once.
    `tenant`: the jobs of its queues. Both: the user's jobs there. The page reads the newest 4,000
    of the user. `source`: the jobs that run a method of this instance. `before` is the id below
    which the page begins, as in the URL. A value that is not a number is ignored. `titles` maps
    names of tasks to texts for users. `errors`: show messages of exceptions. `stats`: show
    `current_job().stats`. Raises InvalidArgument without user, tenant and source.
    """
    if (user is None and tenant is None) == (source is None):
        raise InvalidArgument(
            "your_jobs() needs to know whose jobs: give user=, tenant= or both, or source= alone. "
            "An anonymous visitor has none."
        )
    using = get_settings().database if tenant is None else database_of_tenant(tenant)
    number = read_number(str(before))
    below = NEWEST if number is None else number
    asked = JobFilter(
        queues=None if tenant is None else queue_ids(using, tenant=tenant),
        before=below,
        source=None if source is None else (source_types(source), str(source.pk)),
        created_by=None if user is None else user_text(user),
    )
    page = find_jobs(using, asked, size=size)
    heavy = HEAVY if errors else (*HEAVY, "errors")
    jobs = Job.objects.using(using).defer(*heavy).find_many(page.ids)
    rows = (
        YourJob(job, (titles or {}).get(job.task, ""), url_of(job) if url_of else "")
        for job in sorted(jobs.values(), key=lambda job: -job.pk)
    )
    return YourJobs(tuple(rows), page.older, below == NEWEST, errors, stats)


ayour_jobs = twin(your_jobs)
