"""What is remembered of queues and tasks with a limit per second."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from . import shared_columns
from .queue import TenantQueue
from .task_control import TaskControl


class Rate(models.Model):
    """How much of a burst was used up. There is no row before the first start.

    Apart from the row with the limit, which operators save and every claim reads: it would leave a
    dead version for each start.

    A number of jobs and its time, not the time at which all is made up for (the one timestamp of
    GCRA): that holds for one rate only, and would hold jobs back after the rate was raised.
    """

    debt = models.FloatField(_("debt"))
    """Starts that `max_per_second` had not made up for at `as_of`, also above a lowered burst."""
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
