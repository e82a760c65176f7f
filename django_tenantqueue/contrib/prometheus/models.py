"""Totals of the figures, from which counters of metrics are read."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ...features import check_installed
from ...models.fields import NumberListField

check_installed(__name__)


class FigureTotal(models.Model):
    """Counts of the jobs of one task, from when it got this row up to the minute `at`.

    The row "" is all tasks, without those whose rows were dropped. Its `at` is the minute up to
    which the minute figures are included. Numbers may be negative: together with the later minutes,
    a new task's counter begins at 0. See `contrib/prometheus/sql/add_to_totals.sql`.
    """

    task = models.TextField(_("task"), primary_key=True)
    at = models.DateTimeField(_("up to"))
    started = models.BigIntegerField(_("started"))
    succeeded = models.BigIntegerField(_("succeeded"))
    failed = models.BigIntegerField(_("failed"))
    retried = models.BigIntegerField(_("retried"))
    cancelled = models.BigIntegerField(_("cancelled"))
    wait_micros = models.BigIntegerField(_("wait"))
    """Microseconds as a whole number: a sum of floats could go back in its last digit."""
    run_micros = models.BigIntegerField(_("run time"))
    waits = NumberListField(_("waits"))
    runs = NumberListField(_("run times"))

    class Meta:
        db_table = "tenantqueue_figuretotal"
        verbose_name = _("task total")
        verbose_name_plural = _("task totals")
