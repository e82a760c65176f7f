"""Tenant queues, with the limits of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from ..calls import other_systems
from ..coroutines import twin
from ..exceptions import InvalidState
from . import shared_columns
from .hinted_query import HintedQuerySet
from .verbs import act

if TYPE_CHECKING:
    from ..operations.result import Result


class TenantQueue(models.Model):
    """One queue of one tenant. Every column is read by the next claim, on every machine.

    A row is created at the first use of `(tenant, name)`. The key is an integer, not a bigint, so
    that an entry of the ready index stays within 24 bytes.
    """

    id = models.AutoField(primary_key=True)
    tenant = models.CharField(
        _("tenant"), max_length=200, blank=True, help_text=_("Empty: jobs without a tenant.")
    )
    name = models.CharField(_("queue"), max_length=100, default="default")
    num_slots = shared_columns.num_slots(
        _("How many of its jobs may run at once, on all machines. Empty: no limit."),
        default=5,
        db_default=5,
    )
    weight = models.SmallIntegerField(
        _("weight"),
        default=1,
        db_default=1,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text=_("Turns this queue gets for each turn of a queue of weight 1."),
    )
    max_per_second = shared_columns.max_per_second(
        _("How many jobs may start in a second, on all machines. Empty: no limit.")
    )
    burst = shared_columns.burst()
    max_waiting = models.IntegerField(
        _("max waiting"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(100_000_000)],
        help_text=_("Reject new jobs once this many are ready. Empty: no limit."),
    )
    paused = models.BooleanField(
        _("paused"), default=False, db_default=False, help_text=_("Start no more of its jobs.")
    )
    executor = models.CharField(
        _("executor"),
        max_length=100,
        null=True,
        blank=True,
        help_text=_(
            "The executor that runs its jobs, from the setting EXECUTORS. Empty: the workers. "
            "Claimed jobs are not affected."
        ),
    )
    retired = models.BooleanField(
        _("retired"),
        default=False,
        db_default=False,
        help_text=_("Reject new jobs. Waiting jobs still run."),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = HintedQuerySet["TenantQueue"].as_manager()

    class Meta:
        verbose_name = _("tenant queue")
        verbose_name_plural = _("tenant queues")
        ordering = ("tenant", "name")
        constraints = (
            models.UniqueConstraint(fields=("tenant", "name"), name="tenantqueue_queue_unique"),
            models.CheckConstraint(
                condition=Q(num_slots__gte=0, num_slots__lte=1_000_000),
                name="tenantqueue_queue_num_slots",
            ),
            models.CheckConstraint(
                condition=Q(weight__gte=1, weight__lte=1000), name="tenantqueue_queue_weight"
            ),
            models.CheckConstraint(
                condition=Q(max_per_second__gte=0.0001, max_per_second__lte=1_000_000),
                name="tenantqueue_queue_max_per_second",
            ),
            models.CheckConstraint(
                condition=Q(burst__gte=1, burst__lte=1_000_000), name="tenantqueue_queue_burst"
            ),
            models.CheckConstraint(
                condition=Q(max_waiting__gte=0, max_waiting__lte=100_000_000),
                name="tenantqueue_queue_max_waiting",
            ),
            models.CheckConstraint(condition=~Q(executor=""), name="tenantqueue_queue_executor"),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() & other_systems.QUEUE:
            raise TypeError(f"TenantQueue has no {name!r}: use {other_systems.QUEUE[name]}")
        super().__init__(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.tenant or '–'} / {self.name}"

    if not TYPE_CHECKING:  # else every attribute would exist

        def __getattr__(self, name):
            """Say what is used here in place of an attribute that queues elsewhere have."""
            raise other_systems.unknown_attribute(self, name, other_systems.OF_QUEUE)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Delete it. Raises InvalidState while it has jobs, which would have no tenant then."""
        jobs = import_string("django_tenantqueue.models.Job").objects.using(self._state.db)
        if any(
            leaf.filter(queue_id=self.pk).exists() for leaf in (jobs.unfinished(), jobs.finished())
        ):
            raise InvalidState(
                f"queue {self} cannot be deleted: it has jobs. control.retire(queue) makes it "
                "reject new ones, and control.erase_tenant(…) deletes all rows of a tenant"
            )
        return super().delete(*args, **kwargs)

    def pause(self) -> Result:
        """Start no more of its jobs, see control.pause(). This object is not refreshed."""
        return act("pause", self)

    apause = twin(pause)

    def resume(self) -> Result:
        """Start its jobs again, see control.resume(). This object is not refreshed."""
        return act("resume", self)

    aresume = twin(resume)

    def tune(self, **columns: Any) -> Result:
        """Write columns, see control.tune(): `queue.tune(num_slots=5)`. It is not refreshed."""
        return act("tune", self, **columns)

    atune = twin(tune)

    @property
    def burst_size(self) -> int | None:
        """How many may start at once; None without `max_per_second`. The claim's SQL agrees."""
        return shared_columns.burst_size(self.max_per_second, self.burst)
