"""Task controls: operators pause, limit, or slow down tasks on the whole fleet."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from . import shared_columns


class TaskControl(models.Model):
    """The control of one task, for all tenants; a task without a row has no limits.

    Jobs refer to it by their `task`. Every column is read by the next claim, on every machine.
    """

    of_fleet = True

    task = models.CharField(
        _("task"),
        max_length=500,
        help_text=_(
            "The name as its jobs show it, such as “app.tasks.send” or “app.Model.method”."
        ),
    )
    paused = models.BooleanField(
        _("paused"),
        default=False,
        db_default=False,
        help_text=_("Start no more of its jobs, of any tenant."),
    )
    num_slots = shared_columns.num_slots(
        _("How many of its jobs may run at once, of all tenants together. Empty: any.")
    )
    max_per_second = shared_columns.max_per_second(
        _("How many of its jobs may start in a second, of all tenants. Empty: any.")
    )
    burst = shared_columns.burst()
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("task control")
        verbose_name_plural = _("task controls")
        ordering = ("task",)
        constraints = (
            models.UniqueConstraint(fields=("task",), name="tenantqueue_taskcontrol_unique"),
            models.CheckConstraint(
                condition=Q(num_slots__isnull=True) | Q(num_slots__gte=0, num_slots__lte=1_000_000),
                name="tenantqueue_taskcontrol_num_slots",
            ),
            models.CheckConstraint(
                condition=Q(max_per_second__gte=0.0001, max_per_second__lte=1_000_000),
                name="tenantqueue_taskcontrol_max_per_second",
            ),
            models.CheckConstraint(
                condition=Q(burst__gte=1, burst__lte=1_000_000),
                name="tenantqueue_taskcontrol_burst",
            ),
        )

    def __str__(self) -> str:
        return self.task

    @property
    def burst_size(self) -> int | None:
        """How many may start at once; None without `max_per_second`. The view agrees."""
        return shared_columns.burst_size(self.max_per_second, self.burst)
