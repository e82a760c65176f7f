"""Jobs: one row for each request to run something."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Self

from asgiref.sync import sync_to_async
from django.core.cache import caches
from django.core.exceptions import ObjectDoesNotExist
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import F, Q
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from ..calls import other_systems
from ..calls.arguments import are_removed
from ..coroutines import twin
from ..databases import database_of_id
from ..exceptions import InvalidOption, JobNotFound, JobReadOnly, WaitTimeout
from ..link_tokens import BROWSER_SESSION, USER, sign_job_id
from ..states import ACTIVE, EARLIEST, FINAL, LATEST, Priority, State
from ..stored_error import entries_of
from .fields import StateField, TextListField
from .job_query import JobQuerySet, user_text
from .verbs import act
from .waiting import asleep_through, is_test, polls, seconds_of, sleep_through

if TYPE_CHECKING:
    from ..operations.result import Result

_MISSING = object()
RESULT_REMOVED = "-"
"""The `result_ref` of a job whose result a retention rule has removed."""


def _status_path(token: str) -> str:
    try:
        return reverse("tenantqueue:status", args=[token])
    except NoReverseMatch as error:
        raise NoReverseMatch(
            f"{error}: the URLs of the project lack path('jobs/', "
            "include('django_tenantqueue.web.urls'))"
        ) from None


def bound_token(job_id: int, user: Any, browser_session: Any) -> str:
    """Return the token of Job.status_url_for()."""
    if (user is None) == (browser_session is None):
        raise InvalidOption(
            "bind the link to a user or to a browser's session: give user= or browser_session="
        )
    if browser_session is None:
        if user.pk is None:
            raise InvalidOption(
                f"user={user!r} is not logged in: bind the link to browser_session="
            )
        return sign_job_id(job_id, USER, user_text(user))
    if not browser_session.session_key:
        browser_session.save()
    return sign_job_id(job_id, BROWSER_SESSION, browser_session.session_key)


class Job(models.Model):
    """One request to run something, kept until its month is dropped or a rule deletes it.

    The table is partitioned: every unfinished row is in `tenantqueue_job_hot`, every finished
    one in a leaf of `tenantqueue_job_history`. Rows are written by `operations` only; `save()`
    and `delete()` raise, because the ORM would put a second row of the same id into another leaf
    when it races a finish.
    """

    id = models.BigAutoField(primary_key=True)
    queue = models.ForeignKey(
        "tenantqueue.TenantQueue",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="jobs",
        verbose_name=_("queue"),
    )
    lane = models.SmallIntegerField(
        default=0,
        editable=False,
        help_text=_("Lowest first, over all tenants: the priority, or 0 for all jobs."),
    )
    priority = models.SmallIntegerField(
        _("priority"), default=Priority.DEFAULT, help_text=_("A lower number runs first.")
    )
    State = State
    """The states by their names, as in `Job.State.ERROR`."""
    if not TYPE_CHECKING:
        Status = other_systems.NotHere(other_systems.JOB)
    state = StateField(_("state"), max_length=10, choices=State.choices)
    final = models.BooleanField(default=False, editable=False)
    is_async = models.BooleanField(_("coroutine"), default=False)
    task = models.TextField(_("task"))
    source_type = models.TextField(_("source type"))
    source_id = models.TextField(_("source id"), default="")
    source_method = models.TextField(_("source method"))
    args = models.JSONField(_("arguments"), default=dict)
    run_at = models.DateTimeField(_("run at"))
    created_at = models.DateTimeField(_("created at"))
    queued_at = models.DateTimeField(_("queued at"), null=True)
    started_at = models.DateTimeField(_("started at"), null=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)
    expires_at = models.DateTimeField(_("expires at"), null=True)
    cancel_requested_at = models.DateTimeField(_("cancel requested at"), null=True)
    attempt = models.SmallIntegerField(_("attempt"), default=0)
    max_attempts = models.SmallIntegerField(_("max attempts"), default=1)
    crashes = models.SmallIntegerField(
        _("crashes"), default=0, help_text=_("Worker processes that died while they ran it.")
    )
    claim_seq = models.IntegerField(default=0, editable=False)
    worker = models.ForeignKey(
        "tenantqueue.Worker",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
        verbose_name=_("worker"),
    )
    timeout_seconds = models.FloatField(_("time limit in seconds"), null=True)
    hard_timeout_seconds = models.FloatField(_("hard time limit in seconds"), null=True)
    task_at = models.DateTimeField(
        _("released by its task"),
        null=True,
        help_text=_("When it got a slot of its task, if that is limited."),
    )
    held_by = models.TextField(_("held by"), null=True)
    session_key = models.TextField(_("session"), null=True)
    limit_user = models.TextField(_("user limit"), null=True)
    monitor_id = models.BigIntegerField(_("monitor"), null=True)
    exclusive_key = models.TextField(_("exclusive key"), null=True)
    unique_key = models.TextField(_("unique key"), null=True)
    unique_mode = models.TextField(_("uniqueness"), null=True)
    session_skip = models.BooleanField(
        default=False,
        editable=False,
        help_text=_("Later jobs of its session may start while it waits for its time."),
    )
    session_halt = models.BooleanField(
        default=False, editable=False, help_text=_("Its session halts when it fails.")
    )
    labels = TextListField(null=True, verbose_name=_("labels"))
    created_by = models.TextField(_("created by"), null=True)
    context = models.JSONField(_("context"), null=True)
    progress_done = models.FloatField(_("progress"), null=True)
    progress_total = models.FloatField(_("progress total"), null=True)
    progress_message = models.TextField(_("progress message"), null=True)
    stats = models.JSONField(_("statistics"), null=True, encoder=DjangoJSONEncoder)
    result_data = models.JSONField(_("result"), null=True, db_column="result")
    result_ref = models.TextField(_("result location"), null=True)
    errors = models.JSONField(_("errors"), null=True)
    previous_id = models.BigIntegerField(_("after job"), null=True)
    follow_ups = models.JSONField(_("follow-ups"), null=True)

    objects = JobQuerySet.as_manager()

    duplicate = False
    """True on the existing job that an enqueue returned because it has the unique key."""

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        constraints = (
            models.CheckConstraint(
                condition=Q(final=True, finished_at__isnull=False)
                | Q(final=False, finished_at__isnull=True),
                name="tenantqueue_job_finished",
            ),
            models.CheckConstraint(
                condition=Q(final=True, state__in=sorted(FINAL))
                | (Q(final=False) & ~Q(state__in=sorted(FINAL))),
                name="tenantqueue_job_final",
            ),
            models.CheckConstraint(
                condition=Q(final=True)
                | Q(state__in=sorted(ACTIVE), worker__isnull=False, queued_at__isnull=False)
                | (~Q(state__in=sorted(ACTIVE)) & Q(worker__isnull=True)),
                name="tenantqueue_job_active",
            ),
            models.CheckConstraint(
                condition=Q(state=State.HELD, held_by__isnull=False)
                | (~Q(state=State.HELD) & Q(held_by__isnull=True)),
                name="tenantqueue_job_held",
            ),
            models.CheckConstraint(
                condition=Q(attempt__gte=0, max_attempts__gte=1, attempt__lte=F("max_attempts")),
                name="tenantqueue_job_attempts",
            ),
            models.CheckConstraint(
                condition=Q(run_at__gte=EARLIEST, run_at__lt=LATEST)
                & (Q(expires_at__isnull=True) | Q(expires_at__gte=EARLIEST, expires_at__lt=LATEST)),
                name="tenantqueue_job_times",
            ),
        )

    def __str__(self) -> str:
        return f"{self.task} #{self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise JobReadOnly: use django_tenantqueue.control instead."""
        raise JobReadOnly(
            f"Job {self.pk!r} cannot be saved: jobs are made by Task.delay() and changed by "
            "job.cancel(), .retry(), .run_now(), .tune(), or django_tenantqueue.control"
        )

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise JobReadOnly: cancel the job, or let its history partition be dropped."""
        raise JobReadOnly(
            f"Job {self.pk!r} cannot be deleted by itself: cancel it with job.cancel(), delete "
            "finished jobs with django_tenantqueue.control.delete(), or let their history be "
            "dropped"
        )

    @property
    def tenant(self) -> str:
        """The tenant of its queue; "" for none, or when raw SQL has deleted the queue.

        The first access reads the queue, unless `select_related("queue")` did.
        """
        try:
            return self.queue.tenant
        except ObjectDoesNotExist:
            return ""

    @property
    def result(self) -> Any:
        """The return value of the task, from the row or the cache; None before the end.

        Raises LookupError when the cache has dropped it, or a retention rule has removed it.
        """
        if self.result_ref is None:
            return self.result_data
        if self.result_ref == RESULT_REMOVED:
            raise LookupError(f"the result of job {self.pk} was removed by a retention rule")
        alias, _, key = self.result_ref.partition(":")
        value = caches[alias].get(key, _MISSING)
        if value is _MISSING:
            raise LookupError(
                f"the result of job {self.pk} is no longer in the cache {alias!r}: raise "
                "RESULT_TTL or the size of that cache, or keep results in their rows "
                "(RESULT_STORE, LARGE_RESULT_STORE)"
            )
        return value

    async def aresult(self) -> Any:
        """See result."""
        return await sync_to_async(lambda: self.result)()

    @property
    def arguments_removed(self) -> bool:
        """Whether a retention rule has removed its arguments: it cannot be retried."""
        return are_removed(self.args)

    @property
    def status_url(self) -> str:
        """Path of the job's status as JSON. It is signed and opens without a login."""
        return _status_path(sign_job_id(self.pk))

    def status_url_for(self, *, user: Any = None, browser_session: Any = None) -> str:
        """Return a status URL that only one logged-in user, or one browser session, can open.

        `user`: `request.user`. `browser_session`: `request.session`, which is saved if it has no
        key yet. Raises InvalidOption for neither, for both, and for an anonymous user.
        """
        return _status_path(bound_token(self.pk, user, browser_session))

    astatus_url_for = twin(status_url_for)

    def refresh(self) -> Self:
        """Read the row again, from the primary; return self. Raises JobNotFound.

        A job of eager mode has no row and is returned unchanged.
        """
        if self._is_eager:
            return self
        fresh = Job.objects.using(database_of_id(self.pk)).find(self.pk)
        if fresh is None:
            raise JobNotFound(
                f"job {self.pk} does not exist any more: it was deleted, or its history was "
                "dropped. Retention rules and the setting HISTORY_KEEP_MONTHS say for how long "
                "jobs are kept",
                job_id=self.pk,
            )
        self.__dict__.update(fresh.__dict__)
        return self

    arefresh = twin(refresh)

    def cancel(self) -> Result:
        """Cancel it, see control.cancel(). This object is not refreshed."""
        return act("cancel", self)

    acancel = twin(cancel)

    def retry(self) -> Result:
        """Make it ready again after an error, see control.retry(). This object is not refreshed."""
        return act("retry", self)

    aretry = twin(retry)

    def run_now(self) -> Result:
        """Run it now if it waits for its time, see control.run_now(). It is not refreshed."""
        return act("run_now", self)

    arun_now = twin(run_now)

    def tune(self, **columns: Any) -> Result:
        """Change its `priority` or `run_at`, see control.tune(). This object is not refreshed."""
        return act("tune", self, **columns)

    atune = twin(tune)

    if not TYPE_CHECKING:  # else every attribute would exist

        def __getattr__(self, name):
            """Name the counterpart of an attribute that results of other systems have."""
            raise other_systems.unknown_attribute(self, name, other_systems.JOB)

    def wait(self, timeout: float | timedelta = 30.0) -> Self:
        """Wait until the job has ended; return self, refreshed.

        `timeout`: seconds or a timedelta. The row is polled every 50 ms at first, every half second
        later. Raises WaitTimeout, and Unsupported inside a transaction, whose uncommitted job no
        worker can see. The twin is await_end(): `await` is a keyword of Python.
        """
        sleep_through(self._pauses(timeout))
        return self

    async def await_end(self, timeout: float | timedelta = 30.0) -> Self:
        """See wait()."""
        await asleep_through(self._pauses(timeout))
        return self

    def _pauses(self, timeout: float | timedelta) -> Iterator[float]:
        """Yield the seconds between two polls, until the job has ended. Raises WaitTimeout."""
        if self._is_eager:
            return
        seconds = seconds_of(timeout)
        yield from polls(
            database_of_id(self.pk), seconds, f"job {self.pk}", lambda: bool(self.refresh().final)
        )
        if not self.final:
            raise WaitTimeout(self.pk, self.state, seconds, is_test(), why=self._last_attempt)

    @property
    def _last_attempt(self) -> str:
        """What became of the last attempt of an unfinished job, and when the next one is."""
        error = self.last_error
        if error is None:
            return ""
        failed = f"{error.get('class')}: {error.get('message', '')}".splitlines()[0][:200]
        told = f"attempt {error.get('attempt')} of {self.max_attempts} ended in {failed}"
        seconds = (self.run_at - timezone.now()).total_seconds()
        if self.state == State.SCHEDULED and seconds > 0:
            told += f"; the next is in {seconds:.1f} s"
        return told

    @property
    def _is_eager(self) -> bool:
        """Whether eager mode has run the job in place: it has no row, and a negative id."""
        return self.pk is not None and self.pk < 0

    @property
    def wait_duration(self) -> timedelta | None:
        """Time from when it could run (`created_at` or `run_at`) until its start; None before."""
        if self.started_at is None:
            return None
        return self.started_at - max(self.created_at, self.run_at)

    @property
    def run_duration(self) -> timedelta | None:
        """Run time of the last attempt; None before its end."""
        if self.started_at is None or self.finished_at is None:
            return None
        return self.finished_at - self.started_at

    @property
    def progress_percent(self) -> float | None:
        """0 to 100, or None when the task reported no total."""
        if not self.progress_total or self.progress_done is None:
            return None
        return max(0.0, min(100.0, 100.0 * self.progress_done / self.progress_total))

    @property
    def last_error(self) -> dict[str, Any] | None:
        """The newest entry of `errors`; None without errors.

        Its keys: at, attempt, class, message, traceback; if known also seconds, the run time,
        and answer, the response to an HTTP job.
        """
        found = entries_of(self.errors)
        return found[-1] if found else None
