"""The pages of the list of jobs: found by ids, never by counting, whatever the filters are.

Its columns are in jobs.py (`list_display`). What they read is in SHOWN.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.views.main import ChangeList
from django.db.models import Case, Q, QuerySet, When
from django.db.models.fields.json import KT
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.functional import cached_property

from ..batch_sizes import BATCH
from ..calls.sources import known_names
from ..conf import get_settings
from ..exceptions import InvalidArgument
from ..models import Job, TenantQueue
from ..queries.lists import NEWEST, JobFilter
from ..states import State
from ..status.display_limits import LINE
from ..status.job_conditions import CONDITIONS
from ..status.job_filters import SEARCH, STATE_LABELS, Asked, read_filters
from ..status.job_pages import JobPage
from ..status.masking import masked_columns
from ..status.stored_rows import Column, Row, stored_columns
from .export import read_ids
from .formats import read_number
from .job_list_filters import (
    NAMES_MOST,
    Suggested,
    counted_states,
    filters_of,
    given_filters,
    suggest,
)
from .visible import visible_tenants

PARAMETERS = ("state", "tenant", "tenant_choice", "queue", "queue_id", "task", *CONDITIONS)
PAGE_PARAMETERS = ("before", "trail")

SHOWN = (
    "id",
    "queue_id",
    "task",
    "state",
    "final",
    "priority",
    "attempt",
    "max_attempts",
    "run_at",
    "created_at",
    "started_at",
    "finished_at",
    "cancel_requested_at",
    "held_by",
    "progress_done",
    "progress_total",
    "progress_message",
)
"""Columns that the list reads: arguments, results and errors may be large."""


QUEUE_COLUMNS = (Column("tenant", "tenant"), Column("queue", "name"))
"""What a download of jobs has of their queues; nothing where a queue was deleted."""


class JobChangeList(ChangeList):
    """A page of jobs. `queryset` is what actions may touch; `result_list` is found by ids."""

    page: JobPage
    asked: Asked
    queue: TenantQueue | None = None

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        before = request.GET.get("before", "")
        number = read_number(before)
        self.before = NEWEST if number is None else number
        trail = request.GET.get("trail", "").split(".")
        self.trail = [part for part in trail if part.isdecimal()]
        super().__init__(request, *args, **kwargs)

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Job]:
        """Return all jobs, newest first; what the page shows is narrowed by `get_results`."""
        for name in PAGE_PARAMETERS:  # another filter or search begins at the newest job
            self.params.pop(name, None)
            self.filter_params.pop(name, None)
        if unknown := sorted(self.get_filters_params().keys() - set(PARAMETERS)):
            raise DisallowedModelAdminLookup(f"Filtering by {unknown[0]} not allowed")
        self.tenants_seen = visible_tenants(request)
        try:
            values = given_filters({name: self._given(name) for name in PARAMETERS})
            self.asked = read_filters(
                get_settings().database, {**values, SEARCH: self.query}, tenants=self.tenants_seen
            )
        except InvalidArgument as error:
            self.asked = Asked(JobFilter(), problem=str(error))
        self.queue = self.asked.queue
        self.has_active_filters = any(self._given(name) is not None for name in PARAMETERS)
        given = {**self.filter_params}
        self.filter_specs = [
            kind(request, given, self.model, self.model_admin)
            for kind in filters_of(is_queue_chosen=self.queue is not None)
        ]
        self.has_filters = True
        self.clear_all_filters_qs = self.get_query_string(dict.fromkeys(PARAMETERS))
        return self.root_queryset.order_by("-pk")

    def get_results(self, request: HttpRequest) -> None:
        """Find the page's ids, then read just these rows and their queues."""
        using = get_settings().database
        before = NEWEST if self.asked.job_id is not None else self.before
        self.page = self.asked.below(before).page(using, size=self.list_per_page)
        found = self.root_queryset.filter(pk__in=self.page.ids).only(*SHOWN).annotate(**_ERROR)
        jobs = sorted(found.order_by(), key=lambda job: -job.pk)
        queues = TenantQueue.objects.using(using).in_bulk({job.queue_id for job in jobs})
        for job in jobs:
            job.shown_queue = queues.get(job.queue_id)
        self.result_list = jobs
        self.result_count = self.full_result_count = len(jobs)
        self.show_full_result_count = False
        self.show_admin_actions = bool(jobs)
        self.can_show_all = self.multi_page = False

    @property
    def tenants(self) -> list[str]:
        """Tenants to suggest: of the jobs on the page, and of the newest queues."""
        queues = [job.shown_queue for job in self.result_list if job.shown_queue is not None]
        found = {*self.suggested.tenants, *(queue.tenant for queue in queues)}
        return sorted(found - {""})[:NAMES_MOST]

    @cached_property
    def suggested(self) -> Suggested:
        """Names of tenants and queues to suggest."""
        using = get_settings().database
        return suggest(using, self._given("tenant"), among=self.tenants_seen)

    @property
    def task_names(self) -> list[str]:
        """Names to suggest: of this process's tasks, and of the jobs on the page."""
        names = {*known_names(), *(job.task for job in self.result_list)}
        return sorted(names)[:NAMES_MOST]

    def counted_states(self) -> list[tuple[str | None, Any]]:
        """Return the states, with counts of all jobs or of one queue: others have none."""
        if any(self._given(name) for name in CONDITIONS):
            return STATE_LABELS
        narrowed = any(self._given(name) for name in PARAMETERS if name != "state")
        is_limited = narrowed or self.tenants_seen is not None
        if self.query or self._given("task") or (is_limited and self.queue is None):
            return STATE_LABELS
        return counted_states(get_settings().database, self.queue)

    def all_ids(self) -> Iterator[tuple[int, ...]]:
        """Yield the ids of all jobs that the filters and the search select."""
        for page in self.asked.walk(get_settings().database, size=BATCH):
            yield page.ids

    def _given(self, name: str) -> str | None:
        return self.params.get(name) or None

    @property
    def looked_to_time(self) -> datetime | None:
        """When the job was created down to which the page looked; None: it has gone."""
        jobs = self.root_queryset.filter(pk=self.page.looked_to)
        return jobs.order_by().values_list("created_at", flat=True).first()

    @property
    def is_first_page(self) -> bool:
        """Whether the page begins at the newest job."""
        return self.before == NEWEST

    @property
    def newest_link(self) -> str | None:
        """Query string of the first page; None on it."""
        return None if self.is_first_page else self.get_query_string()

    @property
    def newer_link(self) -> str | None:
        """Query string of the page from which the operator came; None on the first."""
        if self.is_first_page or not self.trail:
            return self.newest_link
        return self._page_link(self.trail[-1], self.trail[:-1])

    @property
    def older_link(self) -> str | None:
        """Query string of the next page; None when there are no older jobs."""
        if self.page.older is None:
            return None
        came_from = [] if self.is_first_page else [*self.trail, str(self.before)]
        return self._page_link(str(self.page.older), came_from)

    def _page_link(self, before: str, trail: list[str]) -> str:
        kept = ".".join(trail[-30:])  # pages back that links lead to
        return self.get_query_string({"before": before, "trail": kept or None})

    @property
    def may_select_all(self) -> bool:
        """Whether more jobs may match than the page shows."""
        return self.page.older is not None or not self.is_first_page

    @property
    def is_unfiltered(self) -> bool:
        """Whether an empty page means that there are no jobs at all."""
        return not self.has_active_filters and not self.query and self.is_first_page


_ERROR = {
    "error_class": Case(When(~Q(state=State.SUCCESS), then=Left(KT("errors__-1__class"), LINE))),
    "error_text": Case(
        When(~Q(state=State.SUCCESS), then=Left(KT("errors__-1__message"), 2 * LINE))
    ),
}
"""The newest error of jobs that have failed or are tried again: no traceback is sent."""


def exported_columns() -> list[Column]:
    """Return the columns of downloaded jobs."""
    return [*stored_columns(Job), *QUEUE_COLUMNS]


def exported_jobs(jobs: QuerySet[Job], pages: Iterator[tuple[int, ...]]) -> Iterator[list[Row]]:
    """Yield the columns of jobs and of their queues, in the order of the ids."""
    columns = stored_columns(Job)
    names_of_columns = [column.attribute for column in columns]
    place = names_of_columns.index("queue_id")
    for rows in read_ids(jobs, columns, pages):
        queues = TenantQueue.objects.using(jobs.db).filter(pk__in={row[place] for row in rows})
        names = {pk: of_queue for pk, *of_queue in queues.values_list("pk", "tenant", "name")}
        yield [
            (
                *masked_columns(dict(zip(names_of_columns, row, strict=True))).values(),
                *names.get(row[place], (None, None)),
            )
            for row in rows
        ]
