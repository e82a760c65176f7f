"""What follows a job, and what it follows, as its page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..models import Job
from ..states import State
from .links import link_to


def previous_link(site: AdminSite, request: HttpRequest, job: Job) -> SafeString | None:
    """Return a link to the job that this one follows; None: it follows none."""
    if job.previous_id is None:
        return None
    return link_to(site, request, Job, job.previous_id, f"#{job.previous_id}")


def follow_up_links(site: AdminSite, request: HttpRequest, job: Job, on: str) -> SafeString | None:
    """Return what follows a job `on` "success" or "end", with links to what was enqueued.

    None: nothing follows it.
    """
    found = [stored for stored in _list(job.follow_ups) if stored.get("on") == on]
    if not found:
        return None
    return format_html_join(
        ", ", "{}", ((_described(site, request, job, stored),) for stored in found)
    )


def _described(
    site: AdminSite, request: HttpRequest, job: Job, stored: dict[str, Any]
) -> SafeString:
    names = " → ".join(_names(stored))
    if (job_id := stored.get("id")) is not None:
        return format_html("{} {}", link_to(site, request, Job, job_id, f"#{job_id}"), names)
    if job.state in (State.ERROR, State.CANCELLED):
        why = gettext("not enqueued: this job has not succeeded. A retry that succeeds enqueues it")
        return format_html("{} ({})", names, why)
    return format_html("{}", names)


def _names(stored: dict[str, Any]) -> Sequence[str]:
    """Return the names of a chain of tasks, from the next one to the last."""
    names = [str(stored.get("name", ""))]
    behind = [further for further in _list(stored.get("follow_ups")) if further["on"] == "success"]
    return [*names, *_names(behind[0])] if behind else names


def _list(follow_ups: Any) -> list[dict[str, Any]]:
    """Return what is stored of follow-ups; what raw SQL has put there is left out."""
    found = follow_ups if isinstance(follow_ups, list) else []
    return [stored for stored in found if isinstance(stored, dict) and "on" in stored]
