"""The details of a monitor as files."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..batches import BATCH
from ..models import ConcurrentJobMonitor, Job
from ..status.monitor_details import walk_details
from .export import Table
from .job_list import exported_columns, exported_jobs


def details_table(using: str, monitor: ConcurrentJobMonitor, part: str | None) -> Table:
    """Return the details that `part`, a count of Progress, counts; None is all."""
    pages = walk_details(using, monitor, part, size=BATCH)
    jobs = exported_jobs(Job.objects.using(using).all(), pages)
    return Table(f"monitor-{monitor.pk}-{part or 'details'}", exported_columns(), jobs)


def download_links(monitor: ConcurrentJobMonitor, part: str, label: Any) -> SafeString:
    """Return links to the details in the state of that label, and to all, as HTML."""
    links = (
        (
            of_links,
            text,
            reverse("admin:tenantqueue_concurrentjobmonitor_details", args=[monitor.pk, form]),
            query,
        )
        for of_links, query in ((label, f"?details={part}"), (gettext("all"), ""))
        for form, text in (("csv", "CSV"), ("jsonl", gettext("JSON lines")))
    )
    return format_html(
        '<p class="tq-downloads">{} {}</p>',
        gettext("Download:"),
        format_html_join(" · ", '<a href="{2}{3}">{0}, {1}</a>', links),
    )
