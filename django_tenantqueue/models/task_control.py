"""Controls of tasks: what operators pause, or cap, on the whole fleet."""

from __future__ import annotations

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
        )

    def __str__(self) -> str:
        return self.name
