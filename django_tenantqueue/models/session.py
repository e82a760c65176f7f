"""Sessions and user limits: jobs that start one after another; how many of a user run at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..databases import database_of_row
from ..gate_keys import EVERYBODY, gate_key
from . import shared_columns
from .job import Job


class SessionQuerySet(models.QuerySet["Session"]):
    """Reads that operators need."""

    def serial(self) -> Self:
        """Sessions: one job at a time."""
        return self.filter(kind=Session.Kind.SERIAL)

    def user_limits(self) -> Self:
        """User limits."""
        return self.filter(kind=Session.Kind.LIMIT_USER)


class Session(models.Model):
    """A line of jobs of one tenant, over all its queues.

    `serial`: its jobs start one after another. `limit_user`: at most `num_slots` of them run at
    once. A row is created when the first job of a line is released, and deleted when nothing is set
    in it and no unfinished job uses it. Jobs have its `gate_key`.
    """

    class Kind(models.TextChoices):
        """What a line limits."""

        SERIAL = "serial", _("session")
        LIMIT_USER = "limit_user", _("user limit")

    class OnWait(models.TextChoices):
        """What happens while the first job of the line waits for its time, or for another
        attempt."""

        BLOCK = "block", _("the session waits")
        SKIP = "skip", _("later jobs may start")

    class OnFailure(models.TextChoices):
        """What happens after a job that ended in error or was cancelled."""

        CONTINUE = "continue", _("the session continues")
        HALT = "halt", _("the session halts")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices)
    tenant = models.CharField(_("tenant"), max_length=200, blank=True)
    key = models.CharField(_("key"), max_length=200, blank=True)
    gate_key = models.TextField(editable=False)
    num_slots = shared_columns.num_slots(
        _("How many of the user's jobs may run at once. Empty: the tenant's default.")
    )
    paused = models.BooleanField(
        _("paused"),
        default=False,
        db_default=False,
        help_text=_("Start no more of its jobs."),
    )
    on_wait = models.CharField(
        _("while its first job waits"),
        max_length=10,
        choices=OnWait.choices,
        blank=True,
        default="",
        db_default="",
        help_text=_("Empty: set by the job."),
    )
    on_failure = models.CharField(
        _("after a failure"),
        max_length=10,
        choices=OnFailure.choices,
        blank=True,
        default="",
        db_default="",
        help_text=_("Empty: set by the job."),
    )
    halted_at = models.DateTimeField(_("halted at"), null=True, blank=True, editable=False)
    halted_by = models.BigIntegerField(_("halted by job"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = SessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ("tenant", "kind", "key")
        indexes = (
            models.Index(
                fields=("id",),
                condition=Q(paused=True) | Q(halted_at__isnull=False),
                name="tenantqueue_session_stopped",
            ),
        )
        constraints = (
            models.UniqueConstraint(fields=("gate_key", "kind"), name="tenantqueue_session_unique"),
            models.CheckConstraint(
                condition=Q(num_slots__isnull=True) | Q(num_slots__gte=0, num_slots__lte=1_000_000),
                name="tenantqueue_session_num_slots",
            ),
            models.CheckConstraint(
                condition=Q(kind="limit_user") | Q(num_slots__isnull=True),
                name="tenantqueue_session_serial",
            ),
            models.CheckConstraint(
                condition=Q(kind="serial") | Q(on_wait="", on_failure=""),
                name="tenantqueue_session_user",
            ),
        )

    def __str__(self) -> str:
        if self.kind == self.Kind.LIMIT_USER and self.key == EVERYBODY:
            return gettext("%s / all users") % (self.tenant or "–")
        return f"{self.tenant or '–'} / {self.key}"

    def jobs(self) -> models.QuerySet[Job]:
        """Return its unfinished jobs."""
        column = "session_key" if self.kind == self.Kind.SERIAL else "limit_user"
        return (
            Job.objects.using(database_of_row(self)).unfinished().filter(**{column: self.gate_key})
        )


class UserLimitManager(models.Manager["UserLimit"]):
    """The user limits alone."""

    def get_queryset(self) -> models.QuerySet[UserLimit]:
        return super().get_queryset().filter(kind=Session.Kind.LIMIT_USER)


class UserLimit(Session):
    """How many jobs of a user run at once: the rows of kind `limit_user`, for the admin."""

    objects = UserLimitManager()  # type: ignore[assignment,misc]

    class Meta:
        proxy = True
        verbose_name = _("user limit")
        verbose_name_plural = _("user limits")

    def clean(self) -> None:
        """Set the key of a new limit."""
        if self._state.adding:
            self.kind = Session.Kind.LIMIT_USER
            self.gate_key = gate_key(self.tenant, self.key)

    def validate_unique(self, exclude: Collection[str] | None = None) -> None:
        """Raise ValidationError when the user has a limit, unless the tenant is wrong."""
        super().validate_unique(exclude)
        if not self._state.adding or "tenant" in (exclude or ()):
            return
        if UserLimit.objects.using(get_settings().database).filter(gate_key=self.gate_key).exists():
            raise ValidationError(_("This user has a limit already: change that one."))
