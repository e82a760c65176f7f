"""The state of rate limits of queues and tasks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from . import shared_columns
from .queue import TenantQueue
from .task_control import TaskControl


class Rate(models.Model):
    """How much of a burst is used up. There is no row before the first start.

    It is not in the row with the limit, which every claim reads: each start would leave a dead row
    version there.

    It stores a number of jobs and its time, a leaky bucket as a meter. The single timestamp of GCRA
    (ITU-T I.371) is right for one rate only: a raised rate would start jobs too late.
    """

    debt = models.FloatField(_("debt"))
    """Starts not yet replenished at `as_of`; it may exceed a lowered burst."""
    as_of = models.DateTimeField(_("as of"))

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk}: {self.debt:g}"


class QueueRate(Rate):
    """The rate of a queue, read and written by claims, under their lock of the queue's row."""

    queue = shared_columns.key_of(TenantQueue, _("queue"))

    class Meta:
        verbose_name = _("queue rate")
        verbose_name_plural = _("queue rates")


class TaskRate(Rate):
    """The rate of a task, written under the lock of the task's gate."""

    control = shared_columns.key_of(TaskControl, _("task control"))

    class Meta:
        verbose_name = _("task rate")
        verbose_name_plural = _("task rates")
