"""Monitors: one large piece of work, fed to the queue a little at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Self

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from ..calls import other_systems
from ..calls.options import unknown_options
from ..coroutines import twin
from ..databases import database_of_row
from ..exceptions import InvalidState, Unsupported, WaitTimeout
from ..states import Priority
from .job import Job
from .verbs import act
from .waiting import asleep_through, is_test, polls, seconds_of, sleep_through

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime, timedelta

    from ..calls.call import CallLike
    from ..operations.result import Result
    from ..status.monitor_progress import Progress


def _operation(name: str) -> Any:
    """Return a function of operations.monitors, by name: operations import the models."""
    return import_string(f"django_tenantqueue.operations.monitors.{name}")


_MADE = (
    "made with its details, by ConcurrentJobMonitor.objects.start(name, [task.call(…), …], "
    "parallel=5, on_end=other.call(…))"
)
_ENDED = ("ended", "cancelled")
"""Statuses of the progress of a monitor that has ended."""
_OPTIONS = (
    *("parallel", "interval", "priority", "tenant", "queue", "session", "on_end"),
    *("stop_after_failures", "keep_open", "created_by"),
)


class MonitorManager(models.Manager["ConcurrentJobMonitor"]):
    """Starts monitors."""

    def start(
        self,
        name: str,
        details: Iterable[CallLike] | CallLike = (),
        *,
        parallel: int,
        interval: float | timedelta = 0,
        priority: int = Priority.DEFAULT,
        tenant: str | None = None,
        queue: str | None = None,
        session: str | int | None = None,
        on_end: CallLike | None = None,
        stop_after_failures: int | None = None,
        keep_open: bool = False,
        created_by: str | None = None,
        **unknown: Never,
    ) -> ConcurrentJobMonitor:
        """Create a monitor and its details in the current transaction. See operations.monitors."""
        if unknown:
            raise unknown_options(unknown, _OPTIONS, other_systems.OF_GROUP)
        started: ConcurrentJobMonitor = _operation("start")(
            name,
            details,
            {
                "priority": priority,
                "tenant": tenant,
                "queue": queue,
                "session": session,
                "created_by": created_by,
            },
            parallel=parallel,
            interval=interval,
            on_end=on_end,
            stop_after_failures=stop_after_failures,
            keep_open=keep_open,
        )
        return started

    astart = twin(start)


class ConcurrentJobMonitor(models.Model):
    """One large piece of work: at most `parallel` of its details are in flight.

    Only operators and the code that started it write here. Workers count from the job rows, or use
    MonitorPace. Its anchor is a job that represents all of them: it takes the monitor's turn in a
    session, waits for the last detail, and then runs the callback.
    """

    tenant = models.CharField(_("tenant"), max_length=200, blank=True, editable=False)
    name = models.CharField(_("name"), max_length=200, editable=False)
    parallel = models.IntegerField(
        _("parallel"),
        validators=[MinValueValidator(0), MaxValueValidator(1_000_000)],
        help_text=_("How many of its details may be in flight: ready, running or to be retried."),
    )
    interval_seconds = models.FloatField(
        _("interval"),
        default=0.0,
        db_default=0.0,
        validators=[MinValueValidator(0), MaxValueValidator(86400)],
        help_text=_("Seconds between batches. 0: start the next detail as soon as one ends."),
    )
    priority = models.SmallIntegerField(
        _("priority"), default=Priority.DEFAULT, help_text=_("A lower number runs first.")
    )
    paused = models.BooleanField(
        _("paused"), default=False, db_default=False, help_text=_("Start no more of its details.")
    )
    stop_after_failures = models.IntegerField(
        _("stop after failures"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text=_("Stop starting details after this many have failed. Empty: never."),
    )
    keep_open = models.BooleanField(
        _("open"),
        default=False,
        db_default=False,
        editable=False,
        help_text=_("It ends only after it is closed: more details may be added."),
    )
    cancelled_at = models.DateTimeField(_("cancelled at"), null=True, blank=True, editable=False)
    session_key = models.TextField(_("session"), null=True, blank=True, editable=False)
    anchor_id = models.BigIntegerField(_("anchor"), editable=False)
    created_by = models.TextField(_("created by"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), editable=False)

    objects = MonitorManager()

    class Meta:
        verbose_name = _("monitor")
        verbose_name_plural = _("monitors")
        ordering = ("-id",)
        indexes = (models.Index(fields=("tenant", "id"), name="tenantqueue_monitor_tenant"),)
        constraints = (
            models.UniqueConstraint(fields=("anchor_id",), name="tenantqueue_monitor_anchor"),
            models.CheckConstraint(
                condition=Q(parallel__gte=0, parallel__lte=1_000_000),
                name="tenantqueue_monitor_parallel",
            ),
            models.CheckConstraint(
                condition=Q(interval_seconds__gte=0, interval_seconds__lte=86400),
                name="tenantqueue_monitor_interval",
            ),
            models.CheckConstraint(
                condition=Q(stop_after_failures__isnull=True) | Q(stop_after_failures__gte=1),
                name="tenantqueue_monitor_failures",
            ),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{error}. A monitor is {_MADE}") from None

    def __str__(self) -> str:
        return f"{self.name} #{self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save it. Raises Unsupported for a new one: use `objects.start()`."""
        if self.anchor_id is None:
            raise Unsupported(f"monitor {self.name!r} cannot be saved: it is {_MADE}")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Delete it. Raises InvalidState while its details or its callback have not ended."""
        jobs = Job.objects.using(self._state.db).unfinished()
        if jobs.filter(Q(monitor_id=self.pk) | Q(pk=self.anchor_id)).exists():
            raise InvalidState(
                f"monitor {self} cannot be deleted: not all of its jobs have ended. Cancel it "
                "first, by monitor.cancel()"
            )
        return super().delete(*args, **kwargs)

    if not TYPE_CHECKING:  # else every attribute would exist

        def __getattr__(self, name):
            """Name the counterpart of an attribute that results of groups have."""
            raise other_systems.unknown_attribute(self, name, other_systems.MONITOR)

    def details(self) -> models.QuerySet[ConcurrentJobMonitorDetail]:
        """Return its details, with finished ones, without its anchor.

        Raises Unsupported for a monitor of eager mode, which has no rows.
        """
        if self.pk is None:
            raise Unsupported(
                f"monitor {self.name!r} ran in eager mode, which stores no jobs: read the results "
                "in its callback, or use run_pending() in tests"
            )
        details = ConcurrentJobMonitorDetail.objects.using(database_of_row(self))
        return details.filter(monitor_id=self.pk).exclude(pk=self.anchor_id)  # type: ignore[return-value]

    def add(self, details: Iterable[CallLike] | CallLike) -> int:
        """Add details in the current transaction; return how many. See operations.monitors."""
        added: int = _operation("add")(self, details)
        return added

    aadd = twin(add)

    def close(self) -> None:
        """Make it end after its last detail. See operations.monitors."""
        _operation("close")(self)

    aclose = twin(close)

    def pause(self) -> Result:
        """Start no more of its details, see control.pause(). This object is not refreshed."""
        return act("pause", self)

    apause = twin(pause)

    def resume(self) -> Result:
        """Start its details again, see control.resume(). This object is not refreshed."""
        return act("resume", self)

    aresume = twin(resume)

    def cancel(self) -> Result:
        """Cancel it and all its details, see control.cancel(). This object is not refreshed."""
        return act("cancel", self)

    acancel = twin(cancel)

    def retry(self) -> Result:
        """Retry its failed details, see control.retry(). This object is not refreshed."""
        return act("retry", self)

    aretry = twin(retry)

    def tune(self, **columns: Any) -> Result:
        """Write columns, see control.tune(): `monitor.tune(parallel=5)`. It is not refreshed."""
        return act("tune", self, **columns)

    atune = twin(tune)

    def wait(self, timeout: float | timedelta = 30.0) -> Self:
        """Wait until its details and its callback have ended; return self, refreshed.

        `timeout`: seconds or a timedelta. Raises WaitTimeout, and Unsupported inside a transaction.
        A monitor that is paused, stopped or open does not end. See Job.wait(). The twin is
        await_end().
        """
        sleep_through(self._pauses(timeout))
        return self

    async def await_end(self, timeout: float | timedelta = 30.0) -> Self:
        """See wait()."""
        await asleep_through(self._pauses(timeout))
        return self

    def _pauses(self, timeout: float | timedelta) -> Iterator[float]:
        """Yield the seconds between two polls, until it has ended. Raises WaitTimeout."""
        if not self.pk:  # eager mode has run it in place
            return
        seconds, what = seconds_of(timeout), f"monitor {self.pk} ({self.name!r})"
        yield from polls(database_of_row(self), seconds, what, self._has_ended)
        found = self.progress()
        if found.status not in _ENDED:
            ended = found.total - found.left
            why = found.reason or f"{ended} of {found.total} details have ended"
            raise WaitTimeout(self.anchor_id, found.status, seconds, is_test(), what=what, why=why)

    def _has_ended(self) -> bool:
        """Whether nothing of it is left. While its anchor is unfinished, that alone is read."""
        jobs = Job.objects.using(database_of_row(self)).unfinished()
        if jobs.filter(pk=self.anchor_id).exists():
            return False
        self.refresh_from_db()
        return self.progress().status in _ENDED

    def progress(self, now: datetime | None = None) -> Progress:
        """Return counts, status, rate and the expected end."""
        progress_of = import_string("django_tenantqueue.status.monitor_progress.progress_of")
        found: Progress = progress_of([self], now=now)[self.pk]
        return found

    aprogress = twin(progress)


class MonitorAddition(models.Model):
    """How many details were added to a monitor at once. Rows are only inserted, without waiting."""

    monitor = models.ForeignKey(ConcurrentJobMonitor, on_delete=models.CASCADE, related_name="+")
    details = models.IntegerField()
    created_at = models.DateTimeField(auto_now_add=True)


class MonitorPace(models.Model):
    """When a monitor with an interval was last fed; written by releases, under its gate's lock."""

    monitor = models.OneToOneField(
        ConcurrentJobMonitor, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    fed_at = models.DateTimeField()


class ConcurrentJobMonitorDetail(Job):
    """One detail of a monitor: a job."""

    class Meta:
        proxy = True
        verbose_name = _("detail")
        verbose_name_plural = _("details")
