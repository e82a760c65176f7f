"""Minute figures: how many jobs started and ended, how long they waited and ran."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .fields import NumberListField


class Figure(models.Model):
    """What happened in one minute, hour or day to the jobs of one task in one queue.

    Three kinds of rows have less in their key. `queue_id` 0 is all queues, and `task` "" is all
    tasks. A row with an `error` counts only the runs that ended with errors of this class.

    Workers add to these rows with their heartbeats. Maintenance merges old minutes into hours, and
    old hours into days, so each run is counted in one row of each kind.
    """

    pk = models.CompositePrimaryKey("queue_id", "at", "task", "error", "minutes")
    queue_id = models.IntegerField(_("queue"))
    at = models.DateTimeField(_("from"))
    task = models.TextField(_("task"))
    error = models.TextField(_("error"))
    minutes = models.SmallIntegerField(_("minutes"))
    """Length of the time that the row counts: 1, 60 or 1440."""
    started = models.BigIntegerField(_("started"))
    succeeded = models.BigIntegerField(_("succeeded"))
    failed = models.BigIntegerField(_("failed"))
    """Ended in `error`."""
    retried = models.BigIntegerField(_("retried"))
    """Failed attempts that another attempt follows."""
    cancelled = models.BigIntegerField(_("cancelled"))
    wait_seconds = models.FloatField(_("wait"))
    """Sum of the waits: from when a job could have run until its start."""
    run_seconds = models.FloatField(_("run time"))
    """Sum of the run times."""
    waits = NumberListField(_("waits"))
    """Number of waits by length: see `histogram.BOUNDS`."""
    runs = NumberListField(_("run times"))
    """Number of run times by length."""
    last_job_id = models.BigIntegerField(_("last job"), null=True)
    """The newest job of a row with an `error`."""

    class Meta:
        verbose_name = _("figure")
        verbose_name_plural = _("figures")
        indexes = [
            models.Index("minutes", "at", name="tenantqueue_figure_age"),
            models.Index(
                "queue_id", "at", name="tenantqueue_figure_errors", condition=~models.Q(error="")
            ),
            models.Index(
                "task",
                "error",
                "at",
                name="tenantqueue_figure_groups",
                condition=~models.Q(error=""),
            ),
        ]
