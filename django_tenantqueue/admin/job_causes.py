"""Why a job does not run, as its page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..models import Job
from ..status.explanation import Cause, Target, explain
from .formats import moment

MODELS = {
    "queue": "tenantqueue",
    "session": "session",
    "usercap": "usercap",
    "monitor": "concurrentjobmonitor",
    "task": "taskcontrol",
    "job": "job",
    "worker": "worker",
}
"""The models of the admin by the kinds of targets."""


@dataclass(frozen=True, slots=True)
class ShownCause:
    """A cause with links: to the row to be edited, and to the jobs that it names."""

    sentence: str
    remedy: str
    done_by: SafeString | str
    links: SafeString


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """What the page says about why a job does not run."""

    sentence: str
    causes: Sequence[ShownCause]


def answer_for(using: str, job: Job) -> ShownAnswer | None:
    """Return what the page of a job says; None: it has ended."""
    if job.is_final:
        return None
    found = explain(using, job)
    return ShownAnswer(found.sentence, [_shown(cause, job) for cause in found.causes])


def _shown(cause: Cause, job: Job) -> ShownCause:
    targets = [cause.target] if cause.target is not None else []
    targets += [Target("job", job_id, f"#{job_id}") for job_id in cause.jobs]
    links = {
        (target.kind, target.id): link_to(target) for target in targets if not _is(target, job)
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


def _is(target: Target, job: Job) -> bool:
    return (target.kind, target.id) == ("job", job.pk)


def link_to(target: Target) -> SafeString:
    """Return a link to the row that an operator would open."""
    labels = {
        "queue": gettext("queue: %s"),
        "session": gettext("session: %s"),
        "usercap": gettext("user cap: %s"),
        "monitor": gettext("monitor: %s"),
        "task": gettext("task: %s"),
        "job": gettext("job %s"),
        "worker": gettext("worker: %s"),
    }
    url = reverse(f"admin:tenantqueue_{MODELS[target.kind]}_change", args=[target.id])
    return format_html('<a href="{}">{}</a>', url, labels[target.kind] % target.label)
