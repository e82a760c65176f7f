"""Schedules: rows that enqueue jobs at their times."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from django.core.exceptions import ValidationError
from django.core.validators import (
    MaxValueValidator,
    MinValueValidator,
    ProhibitNullCharactersValidator,
)
from django.db import models
from django.db.models import (
    Case,
    DurationField,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Now
from django.db.models.lookups import LessThan
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ...calls import other_systems
from ...calls.arguments import check_storable
from ...calls.sources import check_nameable
from ...exceptions import InvalidArgument, InvalidOption, NotAllowed
from ...features import check_installed
from ...models import Job, shared_columns
from ...models.hinted_query import HintedQuerySet
from ...states import Priority
from ...status.thresholds import LATE_SECONDS
from .recurrence import CRON, EPOCH, INTERVAL, LONGEST_EXPRESSION, ONCE, Recurrence

check_installed(__name__)

LATE = timedelta(seconds=LATE_SECONDS)


class ScheduleQuerySet(HintedQuerySet["Schedule"]):
    """Reads of schedules."""

    def planned(self) -> Self:
        """Return enabled schedules with a next run, the earliest first."""
        # not redundant: it is the condition of the index
        return self.filter(enabled=True, next_at__isnull=False).order_by("next_at", "id")

    def due(self, now: datetime | None = None) -> Self:
        """Return due schedules, each with `now` and `running_job_id`.

        `now`: the database's clock if None. With clock_timestamp() all schedules would be read.
        """
        moment = Now() if now is None else Value(now)
        # no EXISTS: the planner might collect all unfinished jobs for it
        running = Job.objects.unfinished().filter(pk=OuterRef("last_job_id")).values("pk")
        rows = self.planned().filter(next_at__lte=moment)
        return rows.annotate(now=moment, running_job_id=Subquery(running[:1]))

    def late(self, by: timedelta = LATE) -> Self:
        """Return schedules that are late by more than this time, the latest ones first.

        A failure postpones the next try, but not the tick.
        """
        jitter = ExpressionWrapper(
            F("jitter_seconds") * Value(timedelta(seconds=1)), output_field=DurationField()
        )
        due = Case(When(failures__gt=0, then=F("tick_at") + jitter), default=F("next_at"))
        before = timezone.now() - by
        # not redundant: rows that may be late are found by their indexes
        may_be_late = Q(next_at__lt=before) | Q(failures__gt=0)
        return self.planned().filter(may_be_late, LessThan(due, before)).order_by(due)

    def failing(self) -> Self:
        """Return enabled schedules that failed at their last tick."""
        return self.filter(failures__gt=0, enabled=True)


class Schedule(models.Model):
    """A job that is enqueued at its times. Maintenance enqueues it once at each tick.

    `tick_at` is the next tick. `next_at` is when maintenance fires it: later by the jitter, or by
    the pause after a failure. Both are null if there is no further tick.
    """

    class Kind(models.TextChoices):
        """Form of the expression."""

        CRON = CRON, _("cron")
        INTERVAL = INTERVAL, _("interval")
        ONCE = ONCE, _("once")

    class CatchUp(models.TextChoices):
        """Ticks that were missed while no worker ran, or while the schedule was disabled."""

        SKIP = "skip", _("skip")
        ONCE = "once", _("run once")
        ALL = "all", _("run each")

    class Overlap(models.TextChoices):
        """At a tick, if the previous job has not ended."""

        ALLOW = "allow", _("run concurrently")
        SKIP = "skip", _("skip the tick")

    class Source(models.TextChoices):
        """Origin of the schedule."""

        ADMIN = "admin", _("admin")
        CODE = "code", _("code")
        REMOVED = "removed", _("removed from the code")

    name = models.CharField(_("name"), max_length=200)
    tenant = shared_columns.tenant_scope(
        "", _("Every tenant: one job for each tenant that has a queue of this name.")
    )
    task = models.CharField(
        _("task"),
        max_length=500,
        help_text=_("Name of a task, or “module:name” of a function that CALLABLES lists."),
    )
    args = models.JSONField(_("positional arguments"), default=list, blank=True)
    kwargs = models.JSONField(_("keyword arguments"), default=dict, blank=True)
    queue = models.CharField(
        _("queue"),
        max_length=100,
        blank=True,
        default="",
        help_text=_("Empty: that of the task."),
    )
    priority = models.SmallIntegerField(
        _("priority"),
        null=True,
        blank=True,
        validators=[
            MinValueValidator(Priority.LOWEST_NUMBER),
            MaxValueValidator(Priority.HIGHEST_NUMBER),
        ],
        help_text=_("Lower runs first. Empty: that of the task."),
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.CRON)
    expression = models.CharField(
        _("when"),
        max_length=LONGEST_EXPRESSION,
        help_text=_(
            "cron: “30 3 * * mon-fri”. Interval: “15m” or “1h 30m”. Once: “2026-12-24 18:00”."
        ),
    )
    time_zone = shared_columns.time_zone()
    jitter_seconds = models.FloatField(
        _("jitter"),
        default=0.0,
        db_default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(86_400.0)],
        help_text=_("Seconds. Each job is enqueued after a random delay of at most this time."),
    )
    catch_up = models.CharField(
        _("missed ticks"),
        max_length=10,
        choices=CatchUp.choices,
        default=CatchUp.SKIP,
        db_default=CatchUp.SKIP,
    )
    overlap = models.CharField(
        _("overlap"),
        max_length=10,
        choices=Overlap.choices,
        default=Overlap.ALLOW,
        db_default=Overlap.ALLOW,
        help_text=_("If the previous job has not ended at a tick."),
    )
    starts_at = models.DateTimeField(_("from"), null=True, blank=True)
    ends_at = models.DateTimeField(_("until"), null=True, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True, db_default=True)
    source = models.CharField(
        _("source"),
        max_length=10,
        choices=Source.choices,
        default=Source.ADMIN,
        db_default=Source.ADMIN,
        editable=False,
    )
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    tick_at = models.DateTimeField(_("next tick"), null=True, editable=False)
    next_at = models.DateTimeField(_("next run"), null=True, editable=False)
    after_tenant = models.CharField(
        _("after tenant"), max_length=200, null=True, blank=True, editable=False
    )
    """The last tenant whose job of this tick was enqueued, while others still wait for theirs."""
    last_at = models.DateTimeField(_("last run"), null=True, editable=False)
    last_tick_at = models.DateTimeField(_("last tick"), null=True, editable=False)
    last_job_id = models.BigIntegerField(_("last job"), null=True, editable=False)
    lateness_seconds = models.FloatField(_("lateness"), null=True, editable=False)
    last_error = models.TextField(_("error"), default="", db_default="", editable=False)
    last_error_at = models.DateTimeField(_("failed at"), null=True, editable=False)
    failures = models.IntegerField(_("failures in a row"), default=0, db_default=0, editable=False)

    now: datetime
    """The database's clock, of a row of ScheduleQuerySet.due()."""
    running_job_id: int | None
    """The last job if it has not ended, of a row of ScheduleQuerySet.due()."""

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        db_table = "tenantqueue_schedule"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ("tenant", "name")
        indexes = (
            models.Index(
                fields=("next_at", "id"),
                condition=Q(enabled=True, next_at__isnull=False),
                name="tenantqueue_schedule_due",
            ),
            models.Index(
                fields=("last_error_at",),
                condition=Q(failures__gt=0),
                name="tenantqueue_schedule_failing",
            ),
            models.Index(
                fields=("id",), condition=~Q(source="admin"), name="tenantqueue_schedule_code"
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "name"), name="tenantqueue_schedule_unique", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(kind__in=("cron", "interval", "once")), name="tenantqueue_schedule_kind"
            ),
            models.CheckConstraint(
                condition=Q(catch_up__in=("skip", "once", "all")),
                name="tenantqueue_schedule_catch_up",
            ),
            models.CheckConstraint(
                condition=Q(overlap__in=("allow", "skip")), name="tenantqueue_schedule_overlap"
            ),
            models.CheckConstraint(
                condition=Q(source__in=("admin", "code", "removed")),
                name="tenantqueue_schedule_source",
            ),
            models.CheckConstraint(
                condition=Q(jitter_seconds__gte=0, jitter_seconds__lte=86_400),
                name="tenantqueue_schedule_jitter",
            ),
            models.CheckConstraint(
                condition=Q(tenant__isnull=False) | Q(overlap="allow"),
                name="tenantqueue_schedule_every_tenant",
            ),
            models.CheckConstraint(
                condition=Q(starts_at__isnull=True)
                | Q(ends_at__isnull=True)
                | Q(starts_at__lte=F("ends_at")),
                name="tenantqueue_schedule_span",
            ),
            models.CheckConstraint(
                condition=Q(tick_at__isnull=True, next_at__isnull=True)
                | Q(tick_at__isnull=False, next_at__isnull=False),
                name="tenantqueue_schedule_tick",
            ),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() & other_systems.SCHEDULE:
            raise TypeError(f"Schedule has no {name!r}: use {other_systems.SCHEDULE[name]}")
        super().__init__(*args, **kwargs)

    if not TYPE_CHECKING:  # else every attribute would exist

        def __getattr__(self, name):
            """Say what is used here in place of an attribute that schedules elsewhere have."""
            raise other_systems.unknown_attribute(self, name, other_systems.SCHEDULE)

    def __str__(self) -> str:
        return f"{shared_columns.scope_label(self.tenant)} / {self.name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save it. A new one is planned for its next tick. Raises InvalidOption."""
        if self._state.adding and self.tick_at is None:
            self.set_next()
        super().save(*args, **kwargs)

    def set_next(self) -> None:
        """Set the next tick from now on. Raises InvalidOption."""
        self.tick_at = self.recurrence.next(timezone.now())
        self.next_at = self.next_look(self.tick_at)
        self.after_tenant = None

    def next_look(self, tick: datetime | None) -> datetime | None:
        """Return when to fire a tick: later by the jitter."""
        if tick is None:
            return None
        return tick + timedelta(seconds=random.uniform(0.0, self.jitter_seconds))

    @property
    def recurrence(self) -> Recurrence:
        """The ticks of the schedule."""
        return Recurrence(
            kind=self.kind,
            expression=self.expression,
            time_zone=self.time_zone,
            anchor=EPOCH,
            starts_at=self.starts_at,
            ends_at=self.ends_at,
        )

    @property
    def due_at(self) -> datetime | None:
        """When it should run, or should have run. See ScheduleQuerySet.late()."""
        if self.failures and self.tick_at is not None:
            return self.tick_at + timedelta(seconds=self.jitter_seconds)
        return self.next_at

    def clean(self) -> None:
        """Check that the columns fit together. Raises ValidationError."""
        for name in ("name", "tenant", "task", "queue"):
            if "\x00" in str(getattr(self, name)):
                raise ValidationError({name: ProhibitNullCharactersValidator.message})
        for name in ("starts_at", "ends_at"):
            shared_columns.check_column_moment(self, name)
        try:
            check_nameable(self.task)
        except NotAllowed as error:
            raise ValidationError({"task": str(error)}) from None
        try:
            if self.expression:  # else its field says so
                self.recurrence.check()
        except InvalidOption as error:
            raise ValidationError({"expression": str(error)}) from None
        if self.tenant is None and self.overlap != self.Overlap.ALLOW:
            text = _("Not possible for every tenant: use a unique task.")
            raise ValidationError({"overlap": text})
        if self.starts_at and self.ends_at and self.starts_at > self.ends_at:
            raise ValidationError({"ends_at": _("It ends before it starts.")})
        if not isinstance(self.args, list):
            raise ValidationError({"args": _("Give a list.")})
        if not isinstance(self.kwargs, dict):
            raise ValidationError({"kwargs": _("Give an object.")})
        for name in ("args", "kwargs"):
            try:
                check_storable(getattr(self, name), name)
            except InvalidArgument as error:
                raise ValidationError({name: str(error)}) from None
