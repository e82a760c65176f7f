"""Routings: the queue of new jobs of a task or a category."""

from __future__ import annotations

from typing import Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...features import check_installed
from ...models import TenantQueue, shared_columns
from ...text import is_storable

check_installed(__name__)


class RoutingQuerySet(models.QuerySet["Routing"]):
    """Reads of routings."""

    def to_retired(self) -> Self:
        """Return routings to a retired queue of their tenant, which rejects jobs."""
        retired = TenantQueue.objects.filter(
            tenant=OuterRef("tenant"), name=OuterRef("queue"), retired=True
        )
        return self.filter(Exists(retired))


class Routing(models.Model):
    """The queue of new jobs whose name matches a pattern, unless their call names a queue.

    The most specific matching routing decides: one of the job's tenant before one of every tenant,
    then a name without `*`, then the longest pattern with it.
    """

    tenant = shared_columns.tenant_scope(None)
    pattern = models.CharField(
        _("task"),
        max_length=500,
        help_text=_(
            "Name of a task, a method or a category, as its jobs show it. “*” stands for any text, "
            "as in “app.tasks.*”."
        ),
    )
    queue = models.CharField(
        _("queue"), max_length=100, help_text=_("Queue of new jobs with this name.")
    )
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    objects = RoutingQuerySet.as_manager()

    class Meta:
        db_table = "tenantqueue_routing"
        verbose_name = _("routing")
        verbose_name_plural = _("routings")
        ordering = ("tenant", "pattern")
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "pattern"),
                name="tenantqueue_routing_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=~Q(pattern="") & ~Q(queue=""), name="tenantqueue_routing_names"
            ),
        )

    def __str__(self) -> str:
        return f"{shared_columns.scope_label(self.tenant)} / {self.pattern} → {self.queue}"

    def clean(self) -> None:
        """Reject names that no job or queue can have."""
        for name in ("tenant", "pattern", "queue"):
            value = getattr(self, name) or ""
            if not is_storable(value) or value != value.strip():
                raise ValidationError({name: gettext("Remove the spaces around the name.")})
