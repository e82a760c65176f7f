"""Jobs on the admin pages of users' own models: JobsOfObjectMixin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model
from django.forms import Media
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..models import Job
from ..models.job_query import source_types
from ..queries.lists import JobOfSource, list_jobs_of_sources
from ..states import State
from ..status.display_limits import LISTED
from ..status.visible import visible_jobs
from .formats import (
    NOTHING,
    breakable,
    duration_text,
    moment,
    ongoing,
    state_badge,
    table,
    unbroken,
)
from .links import job_url
from .visible import visible_tenants

SECTION = "jobs_of_object"
COLUMN = "last_job"
_KEPT = "_tenantqueue_last_job"
_TENANTS = "_tenantqueue_tenants"

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = object


class JobsOfObjectMixin(_Base):
    """Shows the jobs that run methods of an object: `class ReportAdmin(JobsOfObjectMixin, …)`.

    The object's page has a section with its newest jobs. `last_job` may stand in `list_display`.
    Users who may not view jobs see neither.
    """

    @property
    def media(self) -> Media:
        return super().media + Media(css={"all": ["django_tenantqueue/admin.css"]})

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if not self._shows_jobs(request, obj) or SECTION in flatten_fieldsets(fieldsets):
            return fieldsets
        return [*fieldsets, (gettext("Jobs"), {"fields": [SECTION]})]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            setattr(found, _TENANTS, visible_tenants(request))
        return found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of the page. The jobs are none of them unless `fields` names them."""
        fields = super().get_fields(request, obj)
        return fields if self.fields else [name for name in fields if name != SECTION]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return [*fields, SECTION] if self._shows_jobs(request, obj) else fields

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns of the list, without that of the jobs for users who may not see it."""
        columns = super().get_list_display(request)
        if COLUMN not in columns or self._may_view_jobs(request):
            return columns
        return [column for column in columns if column != COLUMN]

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        if COLUMN in changelist.list_display:
            rows = list(changelist.result_list)
            newest = _newest_jobs(rows, visible_tenants(request))
            for row in rows:
                setattr(row, _KEPT, newest.get(str(row.pk)))
        return changelist

    @admin.display(description=_("last job"))
    def last_job(self, obj: Any) -> SafeString | str:
        job: JobOfSource | None = getattr(obj, _KEPT, None)
        if job is None:
            return NOTHING
        return format_html(
            '<a href="{}" title="{}">{}</a> {}',
            job_url(job.id, self.admin_site),
            job.task,
            state_badge(job.state),
            moment(job.finished_at or job.started_at or job.created_at),
        )

    @admin.display(description=_("newest jobs"))
    def jobs_of_object(self, obj: Any) -> SafeString | str:
        jobs = _read([obj], LISTED, getattr(obj, _TENANTS, frozenset()))[:LISTED]
        if not jobs:
            return gettext("It has no jobs.")
        now = timezone.now()
        rows = (
            (
                format_html(
                    '<a href="{}"><span class="tq-number">#{}</span> {}</a>',
                    job_url(job.id, self.admin_site),
                    job.id,
                    breakable(job.task),
                ),
                state_badge(job.state),
                moment(job.created_at, now),
                unbroken(_run_time(job, now)),
            )
            for job in jobs
        )
        shown = table((_("Job"), _("State"), _("Created"), _("Run time")), rows)
        if len(jobs) < LISTED:
            return shown
        more = gettext("Only the newest %d are shown.") % LISTED
        return format_html('<div>{}<p class="tq-quiet">{}</p></div>', shown, more)

    def _shows_jobs(self, request: HttpRequest, obj: Any) -> bool:
        return obj is not None and self._may_view_jobs(request)

    def _may_view_jobs(self, request: HttpRequest) -> bool:
        job_admin = self.admin_site._registry.get(Job)
        return bool(job_admin and job_admin.has_view_permission(request))


def _read(
    objects: Sequence[Model], most: int, tenants: Collection[str] | None
) -> list[JobOfSource]:
    """Return the newest jobs of each of some objects of one model and database.

    With `tenants`, those of other tenants are left out.
    """
    using = get_settings().database
    types = source_types(objects[0])
    keys = [str(obj.pk) for obj in objects]
    jobs = list_jobs_of_sources(using, types, keys, most=most)
    if tenants is None:
        return jobs
    ids = [job.id for job in jobs]
    kept = set(visible_jobs(using, tenants).filter(pk__in=ids).values_list("pk", flat=True))
    return [job for job in jobs if job.id in kept]


def _newest_jobs(
    objects: Sequence[Model], tenants: Collection[str] | None
) -> dict[str, JobOfSource]:
    """Return the newest job of each object that has one, by the object's primary key."""
    newest: dict[str, JobOfSource] = {}
    for job in _read(objects, 1, tenants) if objects else ():
        newest.setdefault(job.source_id, job)
    return newest


def _run_time(job: JobOfSource, now: datetime) -> SafeString | str:
    if job.started_at is None:
        return NOTHING
    if job.state == State.RUNNING:
        return ongoing(now - job.started_at, gettext("runs"))
    ran: timedelta | None = None if job.finished_at is None else job.finished_at - job.started_at
    return duration_text(ran)
