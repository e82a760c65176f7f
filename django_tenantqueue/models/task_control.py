"""Controls of tasks: what operators pause, cap, or slow down, on the whole fleet."""

from __future__ import annotations

import math

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class TaskControl(models.Model):
    """What holds the jobs of one task, of all tenants; a task without a row runs freely.

    Jobs refer to it by their `name`. Every column is read by the next claim, on every machine.
    """

    name = models.CharField(
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
    num_slots = models.IntegerField(
        _("slots"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1_000_000)],
        help_text=_("How many of its jobs may run at once, of all tenants together. Empty: any."),
    )
    max_per_second = models.FloatField(
        _("starts per second"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0001), MaxValueValidator(1_000_000)],
        help_text=_("How many of its jobs may start in a second, of all tenants. Empty: any."),
    )
    burst = models.IntegerField(
        _("burst"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text=_("How many may start at once after a pause. Empty: those of one second."),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("task control")
        verbose_name_plural = _("task controls")
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("name",), name="tenantqueue_taskcontrol_unique"),
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
        return self.name

    @property
    def burst_size(self) -> int | None:
        """How many may start at once; None without `max_per_second`. The view agrees."""
        if self.max_per_second is None:
            return None
        return self.burst or max(1, math.ceil(self.max_per_second))


class TaskRate(models.Model):
    """How much of a task's burst is used up, written under the lock of the task's gate.

    Apart from the control, which every claim reads: it would leave a dead version for each start.
    """

    control = models.OneToOneField(
        TaskControl,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="+",
        verbose_name=_("task control"),
    )
    debt = models.FloatField(_("debt"))
    """Starts that `max_per_second` had not made up for at `as_of`, also above a lowered burst."""
    as_of = models.DateTimeField(_("as of"))

    class Meta:
        verbose_name = _("task rate")
        verbose_name_plural = _("task rates")

    def __str__(self) -> str:
        return f"{self.pk}: {self.debt:g}"
