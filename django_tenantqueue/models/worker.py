"""Worker processes."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils.translation import gettext_lazy as _

from .fields import TextListField

HEARTBEAT_SECONDS = 5.0
"""Time between two heartbeats, which also fetch the orders of operators."""
SILENT = timedelta(seconds=HEARTBEAT_SECONDS * 6)
"""A worker without a heartbeat for this time is silent; behind a pooler it counts as dead."""
RESEND_SECONDS = 5.0
"""Wait before a dispatcher's message may be sent again. It doubles each time."""
THREADS = 8
"""Threads of a child unless its command says otherwise."""


class Role(models.TextChoices):
    """What a worker process does with jobs."""

    WORKER = "worker", _("worker")
    """It claims and runs them."""
    DISPATCHER = "dispatcher", _("dispatcher")
    """It claims them and sends them to an executor."""
    RUNNER = "runner", _("process of an executor")
    """It takes over and runs what a dispatcher has sent."""


class Worker(models.Model):
    """One running worker process: a child of `runworker`, or a process of an executor.

    `sleeping_until` is set while it waits for a notification on the channel `tenantqueue_<id>`. The
    process that wakes it clears the column first.
    """

    of_fleet = True

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=200)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"))
    supervisor_pid = models.IntegerField(_("supervisor's process id"))
    version = models.CharField(_("version"), max_length=50)
    started_at = models.DateTimeField(_("started at"))
    heartbeat_at = models.DateTimeField(_("last heartbeat"))
    queues = TextListField(default=list, verbose_name=_("queues"))
    exclude_queues = TextListField(default=list, verbose_name=_("excluded queues"))
    tenants = TextListField(default=list, verbose_name=_("tenants"))
    threads = models.IntegerField(_("threads"))
    async_slots = models.IntegerField(_("coroutine slots"))
    role = models.CharField(
        _("role"), max_length=10, choices=Role.choices, default=Role.WORKER, db_default=Role.WORKER
    )
    executor = models.CharField(
        _("executor"),
        max_length=100,
        default="",
        db_default="",
        blank=True,
        help_text=_("The executor to which it sends jobs, or to which it belongs. Empty: none."),
    )
    draining = models.BooleanField(
        _("draining"), default=False, help_text=_("Finishes running jobs and claims no more.")
    )
    stopping = models.BooleanField(
        _("stopping"),
        default=False,
        db_default=False,
        help_text=_("Drains, and returns jobs still running after its shutdown timeout."),
    )
    leased = models.BooleanField(
        _("leased"), default=False, help_text=_("An advisory lock shows whether it is alive.")
    )
    sleeping_until = models.DateTimeField(_("sleeping until"), null=True, blank=True)
    jobs_running = models.IntegerField(_("running"), default=0, db_default=0)
    rss_bytes = models.BigIntegerField(_("memory"), null=True, blank=True)
    claims_per_second = models.FloatField(_("claims per second"), default=0, db_default=0)
    jobs_per_second = models.FloatField(_("jobs per second"), default=0, db_default=0)
    clock_ahead_seconds = models.FloatField(
        _("clock ahead of the server's, in seconds"), default=0, db_default=0
    )
    last_error = models.TextField(_("last error"), default="", db_default="", blank=True)
    last_error_at = models.DateTimeField(_("last error at"), null=True, blank=True)
    unknown_tasks = TextListField(
        null=True,
        blank=True,
        verbose_name=_("unknown tasks"),
        help_text=_("Tasks of jobs that its code does not have. It leaves them to other workers."),
    )

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ("host", "id")
        indexes = (
            models.Index(
                fields=["sleeping_until"],
                name="tenantqueue_worker_sleeping",
                condition=models.Q(sleeping_until__isnull=False),
            ),
            models.Index(
                fields=["id"],
                name="tenantqueue_worker_unknown",
                condition=models.Q(unknown_tasks__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.name
