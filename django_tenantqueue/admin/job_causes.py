"""Why a job does not run, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import ConcurrentJobMonitor, Job, Session, TaskControl, TenantQueue, UserLimit, Worker
from ..status.explanation import Cause, Target, explain
from .formats import moment
from .links import link_to

KINDS: dict[str, tuple[type[Model], Any]] = {
    "queue": (TenantQueue, _("queue: %s")),
    "session": (Session, _("session: %s")),
    "userlimit": (UserLimit, _("user limit: %s")),
    "monitor": (ConcurrentJobMonitor, _("monitor: %s")),
    "task": (TaskControl, _("task: %s")),
    "job": (Job, _("job %s")),
    "worker": (Worker, _("worker: %s")),
}
"""Kinds of targets -> the model of the admin, and what a link says."""


@dataclass(frozen=True, slots=True)
class ShownCause:
    """A cause with links: to the row to be edited, and to the jobs that it names."""

    sentence: str
    remedy: str
    done_by: SafeString | str
    links: SafeString


def answer_for(
    site: AdminSite, request: HttpRequest, using: str, job: Job
) -> dict[str, Any] | None:
    """Return what the page of a job says about why it does not run; None: it has ended."""
    if job.final:
        return None
    found, this = explain(using, job), Target("job", job.pk, "")
    causes = [shown_cause(site, request, cause, this) for cause in found.causes]
    return {"sentence": found.sentence, "causes": causes}


def shown_cause(site: AdminSite, request: HttpRequest, cause: Cause, this: Target) -> ShownCause:
    """Return a cause with links to all that it names, except the row of `this` page."""
    targets = [cause.target] if cause.target is not None else []
    targets += [Target("job", job_id, f"#{job_id}") for job_id in cause.jobs]
    links = {
        (target.kind, target.id): _link(site, request, target)
        for target in targets
        if (target.kind, target.id) != (this.kind, this.id)
    }
    done_by: SafeString | str = ""
    if cause.done_by is not None:
        done_by = format_html(
            gettext("Last set by {name}, {at}."),
            name=cause.done_by.text,
            at=moment(cause.done_by.at),
        )
    joined = format_html_join(" · ", "{}", ((link,) for link in links.values()))
    return ShownCause(cause.sentence, cause.remedy, done_by, joined)


def _link(site: AdminSite, request: HttpRequest, target: Target) -> SafeString:
    model, label = KINDS[target.kind]
    return link_to(site, request, model, target.id, label % target.label)
