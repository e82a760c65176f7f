"""Retention rules: how long to keep ended jobs and their values."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...features import check_installed
from ...models import shared_columns
from ...settings import MOST_DAYS
from ...states import FINAL, State

check_installed(__name__)

DAYS = ("keep_days", "arguments_days", "results_days", "errors_days")
"""Columns with days after the end of a job."""


def _days(label: Any, help_text: Any, least: int = 0) -> models.IntegerField[Any, Any]:
    return models.IntegerField(
        label,
        null=True,
        blank=True,
        validators=[MinValueValidator(least), MaxValueValidator(MOST_DAYS)],
        help_text=help_text,
    )


class RetentionRule(models.Model):
    """How many days to keep ended jobs of a tenant, a task or a state, and their values.

    Each number comes from the most specific matching rule that sets it: one of the job's tenant
    before one of every tenant, then the longest task without `*`, then the longest with it, then
    one with a state. Without a rule for the job itself, HISTORY_KEEP_MONTHS applies.
    """

    of_fleet = True

    tenant = shared_columns.tenant_scope(None)
    task = models.CharField(
        _("task"),
        max_length=500,
        blank=True,
        default="",
        help_text=_(
            "Name, as its jobs show it. “*” stands for any text, as in “app.tasks.*”. Empty: every "
            "task."
        ),
    )
    state = models.CharField(
        _("state"),
        max_length=10,
        blank=True,
        default="",
        choices=[(state.value, state.label) for state in State if state in FINAL],
        help_text=_("Empty: every final state."),
    )
    keep_days = _days(
        _("keep jobs (days)"),
        _(
            "Days after the job ended. Empty: inherited from the next less specific rule or "
            "HISTORY_KEEP_MONTHS."
        ),
        1,
    )
    arguments_days = _days(
        _("keep arguments (days)"),
        _(
            "Days after the job ended. A job without its arguments cannot be retried. Empty: "
            "inherited from the next less specific rule."
        ),
    )
    results_days = _days(
        _("keep results (days)"),
        _("Days after the job ended. Empty: inherited from the next less specific rule."),
    )
    errors_days = _days(
        _("keep errors (days)"),
        _(
            "Days for messages and tracebacks. Exception classes stay with the job. Empty: "
            "inherited from the next less specific rule."
        ),
    )
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        db_table = "tenantqueue_retentionrule"
        verbose_name = _("retention rule")
        verbose_name_plural = _("retention rules")
        ordering = ("tenant", "task", "state")
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "task", "state"),
                name="tenantqueue_retentionrule_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(state__in=("", *sorted(FINAL))), name="tenantqueue_retentionrule_state"
            ),
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{name}__isnull": True})
                    | Q(**{f"{name}__gte": least, f"{name}__lte": MOST_DAYS}),
                    name=f"tenantqueue_retentionrule_{name}",
                )
                for name, least in zip(DAYS, (1, 0, 0, 0), strict=True)
            ),
        )

    def __str__(self) -> str:
        tenant = shared_columns.scope_label(self.tenant)
        return " / ".join([tenant, *(part or "–" for part in (self.task, self.state))])

    def clean(self) -> None:
        """Reject a rule without days, and spaces around a name."""
        if all(getattr(self, name) is None for name in DAYS):
            raise ValidationError(gettext("Give a number of days."))
        if self.task != self.task.strip():
            raise ValidationError({"task": gettext("Remove the spaces around the name.")})
