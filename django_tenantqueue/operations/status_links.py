"""Revoke links to the statuses of jobs."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from ..conf import alias_of, get_settings
from ..exceptions import InvalidOption, JobNotFound
from ..models import Change, Job, StatusLinkRevocation, TenantQueue
from ..models.job_query import user_text
from .changes import Edit, record_rows
from .tuning import lock_or_make

KEPT = 10
"""A revocation is kept for this multiple of STATUS_MAX_AGE, which may be raised up to so much
without opening revoked links. Doubled: twice the rows."""


def revoke_status_links(
    *,
    job: Job | int | None = None,
    user: object | None = None,
    tenant: str | None = None,
    before: datetime | None = None,
    using: str | None = None,
) -> StatusLinkRevocation:
    """Let links to statuses that were made before `before` (None: now) open no more.

    Those of one job; of one user: of jobs with this `created_by`, or bound to this user; of one
    tenant. What is given must all fit; without any, it is every link. Returns the revocation.
    Raises JobNotFound, and InvalidOption for a time that is naive or in the future.
    """
    alias = alias_of(using)
    now = timezone.now()
    moment = now if before is None else before
    if timezone.is_naive(moment) or moment > now:
        raise InvalidOption(f"before={before!r}: it must be an aware datetime that is not to come")
    row = StatusLinkRevocation(
        job_id=0 if job is None else job if isinstance(job, int) else job.pk,
        user="" if user is None else user_text(user),
        tenant=tenant or "",
        before=moment,
    )
    if job is not None and not row.tenant:
        row.tenant = _tenant_of(alias, row.job_id)
    row.clean_fields(exclude=("id",))
    key = {"job_id": row.job_id, "user": row.user, "tenant": row.tenant}
    rows = StatusLinkRevocation.objects.using(alias)
    with transaction.atomic(using=alias):
        kept = lock_or_make(rows, tuple(key), {**key, "before": moment})
        if kept.before < moment:
            kept.before = moment
            kept.save(using=alias, update_fields=["before"])
        record_rows(alias, Change.Action.REVOKE, [kept], Edit({}, {"before": moment}))
        age = timedelta(seconds=KEPT * get_settings().status_max_age)
        rows.filter(before__lt=now - age).delete()
    return kept


def _tenant_of(using: str, job_id: int) -> str:
    found = Job.objects.using(using).find(job_id)
    if found is None:
        raise JobNotFound(f"there is no job {job_id}")
    return TenantQueue.objects.using(using).get(pk=found.queue_id).tenant
