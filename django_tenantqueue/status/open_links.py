"""The jobs that links to their statuses open, and what such a status says of an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Q
from django.utils.translation import gettext

from ..conf import get_settings
from ..link_tokens import Holder, Link, read_link
from ..models import Job, StatusLinkRevocation, TenantQueue
from ..states import State

OWN_MESSAGE = "message"
"""The STATUS_ERROR that shows the messages of exceptions."""


def open_links(using: str, tokens: Sequence[str], who: Holder) -> dict[str, Job]:
    """Return the jobs of the tokens that open: each is verified by itself.

    `who` tells who asks, see read_link(). Three statements at most, whatever the number of tokens.
    """
    links = {token: link for token in tokens if (link := read_link(token, who)) is not None}
    if not links:
        return {}
    jobs = Job.objects.using(using).find_many([link.job_id for link in links.values()])
    found = {token: jobs[link.job_id] for token, link in links.items() if link.job_id in jobs}
    return _not_revoked(using, links, found) if found else {}


def _not_revoked(using: str, links: Mapping[str, Link], jobs: Mapping[str, Job]) -> dict[str, Job]:
    """Return what no revocation closes. One statement, and one more when there is one."""
    queues = {job.queue_id for job in jobs.values()}
    users = {user for token, job in jobs.items() for user in _users(links[token], job)}
    tenants = TenantQueue.objects.using(using).filter(pk__in=queues)
    revoked = list(
        StatusLinkRevocation.objects.using(using).filter(
            Q(tenant="") | Q(tenant__in=tenants.values("tenant")),
            job_id__in=[0, *(job.pk for job in jobs.values())],
            user__in=["", *users],
            before__gt=min(links[token].made_at for token in jobs),
        )
    )
    if not revoked:
        return dict(jobs)
    tenant_of = dict(tenants.values_list("pk", "tenant"))
    return {
        token: job
        for token, job in jobs.items()
        if not any(_closes(row, links[token], job, tenant_of[job.queue_id]) for row in revoked)
    }


def _users(link: Link, job: Job) -> tuple[str, ...]:
    return link.user, job.created_by or ""


def _closes(row: StatusLinkRevocation, link: Link, job: Job, tenant: str) -> bool:
    return (
        link.made_at < row.before
        and row.job_id in (0, job.pk)
        and row.tenant in ("", tenant)
        and (not row.user or row.user in _users(link, job))
    )


def public_error(job: Job) -> str | None:
    """Return what users may read of a job's newest error, by STATUS_ERROR; None: there is none."""
    error = job.last_error if job.state != State.SUCCESS else None
    if error is None:
        return None
    text = get_settings().status_error
    return str(error.get("message", "")) if text == OWN_MESSAGE else gettext(text)
