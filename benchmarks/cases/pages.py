"""The pages of the admin with long tables behind them: their time and their statements."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from unittest import mock

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.http import urlencode

from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import ConcurrentJobMonitor
from django_tenantqueue.queries import base

from ..bench import Bench
from ..bench_app import tasks
from ..fill import add_waiting
from ..measure import percentile
from ..results import Incorrect, Row, Sample, at_most
from .backlog import use_deep

WITHIN_MILLISECONDS = 300
MOST_STATEMENTS = 30
ADMIN = "/admin/tenantqueue/"
SITE = {
    "ALLOWED_HOSTS": ["testserver"],
    "INSTALLED_APPS": [
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django.contrib.staticfiles",
        "django_tenantqueue",
        "django_tenantqueue.contrib.alerts",
        "django_tenantqueue.contrib.api",
        "django_tenantqueue.contrib.celery",
        "django_tenantqueue.contrib.fireworq",
        "django_tenantqueue.contrib.http",
        "django_tenantqueue.contrib.prometheus",
        "django_tenantqueue.contrib.retention",
        "django_tenantqueue.contrib.routing",
        "django_tenantqueue.contrib.schedules",
        "benchmarks.bench_app",
    ],
    "MIDDLEWARE": [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    "ROOT_URLCONF": "benchmarks.urls",
    "SESSION_ENGINE": "django.contrib.sessions.backends.signed_cookies",
    "STATIC_URL": "static/",
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
}
"""A site with an admin. The other cases have none, so their workers do not load one."""
WORKERS = (
    "INSERT INTO tenantqueue_worker (name, host, pid, supervisor_pid, version, started_at, "
    "heartbeat_at, queues, exclude_queues, tenants, threads, async_slots, draining, leased) "
    "SELECT 'worker-' || n, 'here', n, n, '1', now(), now(), '{}', '{}', '{}', 8, 100, false, "
    "false FROM generate_series(1, %(count)s) n"
)
FIGURES = (
    "INSERT INTO tenantqueue_figure (queue_id, at, task, error, minutes, started, succeeded, "
    "failed, retried, cancelled, wait_seconds, run_seconds, waits, runs, last_job_id) "
    "SELECT key.queue_id, date_bin(make_interval(mins => %(minutes)s), now(), 'epoch') "
    "- n * make_interval(mins => %(minutes)s), key.task, key.error, %(minutes)s, 90, 80, 10, 0, "
    "0, 9.5, 25.5, '{0,0,0,50,40}', '{0,0,0,0,0,0,0,40,50}', 1 "
    "FROM generate_series(0, %(periods)s) n, ("
    "SELECT 0 AS queue_id, '' AS task, '' AS error UNION ALL "
    "SELECT 0, 'task-' || m, '' FROM generate_series(1, 50) m UNION ALL "
    "SELECT 0, 'task-' || m, 'ValueError' FROM generate_series(1, 50) m UNION ALL "
    "SELECT 0, %(task)s, 'ValueError' UNION ALL "
    "SELECT m, %(task)s, 'ValueError' FROM generate_series(1, 20) m UNION ALL "
    "SELECT m, 'task-' || m %% 50, '' FROM generate_series(1, %(queues)s) m UNION ALL "
    "SELECT m, 'task-' || m %% 50, 'ValueError' FROM generate_series(1, %(queues)s / 10) m) key"
)
"""Minutes, hours and days, as many as are kept."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request: its time, its statements, and the longest of these (milliseconds)."""

    milliseconds: float
    statements: int
    longest: float


FOR_ALL = {"index": "0", "select_across": "1", "_selected_action": "1"}
"""What the list of jobs posts for an action on all jobs that match."""


def run(bench: Bench) -> Iterator[Row]:
    """Measure each page."""
    use_deep(bench)
    with override_settings(**SITE):
        # other cases made the database without the admin's tables
        call_command("migrate", verbosity=0)
        _fill(bench)
        client = Client()
        client.force_login(User.objects.get_or_create(username="admin", is_superuser=True)[0])
        User.objects.update(is_staff=True)
        for title, path in _pages(bench).items():
            rounds = bench.rounds(lambda path=path: _visit(client, path, bench.size(20, 3)))
            yield Row(
                "pages",
                title,
                "ms",
                rounds,
                higher_is_better=False,
                target=at_most(WITHIN_MILLISECONDS),
            )
    bench.reset(history=False)


def _fill(bench: Bench) -> None:
    bench.reset(history=False)
    count = bench.size(10_000, 100)
    queues = bench.make_queues([f"tenant-{n:05}" for n in range(count)], num_slots=1, paused=False)
    waiting = bench.size(1_000_000, 10_000)
    add_waiting(bench.db, [queue.pk for queue in queues], waiting // count)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_tenantqueue SET paused = true WHERE mod(id, 2) = 0")
        cursor.execute("TRUNCATE tenantqueue_figure, tenantqueue_worker")
        cursor.execute(WORKERS, {"count": bench.size(1_000, 20)})
        for minutes, periods in ((1, 180), (60, 192), (1440, 400)):
            params = {"minutes": minutes, "periods": periods, "queues": 300}
            cursor.execute(FIGURES, {**params, "task": tasks.noop_async.name})
    _fill_rules(bench)
    ConcurrentJobMonitor.objects.start(
        "work",
        (tasks.work.call(1, number) for number in range(bench.size(100_000, 1_000))),
        parallel=20,
        tenant="tenant-00000",
    )
    bench.vacuum()


def _fill_rules(bench: Bench) -> None:
    """Put in what tenants and operators set: schedules, rules, routings, tokens."""
    now, long_ago = timezone.now(), timezone.now() - timedelta(days=1)
    made = (Alert, AlertRule, RetentionRule, Routing, Schedule)
    for model in (*made, ApiToken):
        model.objects.all().delete()
    Schedule.objects.bulk_create(
        Schedule(
            tenant=f"tenant-{number:05}",
            name="nightly",
            task=tasks.noop_async.name,
            kind="interval",
            expression="1d",
            tick_at=now + timedelta(hours=12) if number % 20 else long_ago,
            next_at=now + timedelta(hours=12) if number % 20 else long_ago,
        )
        for number in range(bench.size(20_000, 100))
    )
    RetentionRule.objects.bulk_create(
        RetentionRule(tenant=f"tenant-{number:05}", keep_days=90)
        for number in range(bench.size(1_000, 20))
    )
    Routing.objects.bulk_create(
        Routing(tenant=f"tenant-{number:05}", pattern="no.such.*", queue="default")
        for number in range(bench.size(1_000, 20))
    )
    ApiToken.objects.bulk_create(
        ApiToken(name="client", tenant=f"tenant-{number:05}", scopes="read", digest=f"{number:064}")
        for number in range(bench.size(10_000, 100))
    )
    rules = AlertRule.objects.bulk_create(
        AlertRule(name=f"rule {number}", kind="queue_late", log=True)
        for number in range(bench.size(200, 20))
    )
    Alert.objects.bulk_create(
        Alert(rule=rule, key=str(number), label=f"{number}", opened_at=now, seen_at=now)
        for rule in rules
        for number in range(50)
    )


def _pages(bench: Bench) -> dict[str, str | tuple[str, str]]:
    """Return the addresses of the pages by their titles."""
    waiting = bench.value("SELECT max(id) FROM tenantqueue_job_hot WHERE state = 'ready'")
    failed = bench.value(
        "SELECT id FROM tenantqueue_job_history WHERE state = 'error' ORDER BY id DESC LIMIT 1"
    )
    queue = bench.value("SELECT max(id) FROM tenantqueue_tenantqueue")
    monitor = bench.value("SELECT max(id) FROM tenantqueue_concurrentjobmonitor")
    worker = bench.value("SELECT max(id) FROM tenantqueue_worker")
    group = urlencode({"task": tasks.noop_async.name, "error": "ValueError", "hours": 168})
    return {
        "first page, 1 hour": ADMIN,
        "first page, 24 hours": f"{ADMIN}?hours=24",
        "first page, 7 days": f"{ADMIN}?hours=168",
        "tenant queues": f"{ADMIN}tenantqueue/",
        "tenant queues, a search": f"{ADMIN}tenantqueue/?q=tenant-000",
        "tenant queues by wait": f"{ADMIN}tenantqueue/?o=3",
        "full tenant queues": f"{ADMIN}tenantqueue/?trouble=full",
        "failing tenant queues": f"{ADMIN}tenantqueue/?trouble=failing",
        "a tenant queue": f"{ADMIN}tenantqueue/{queue}/change/",
        "jobs": f"{ADMIN}job/",
        "jobs that failed": f"{ADMIN}job/?state=error",
        "ready jobs of a queue": f"{ADMIN}job/?queue_id={queue}&state=ready",
        "jobs of a task": f"{ADMIN}job/?q={tasks.noop_async.name}",
        "question: retry all": (f"{ADMIN}job/?state=error", "retry_selected"),
        "question: cancel all": (f"{ADMIN}job/", "cancel_selected"),
        "question: delete all of a task": (
            f"{ADMIN}job/?q={tasks.noop_async.name}",
            "delete_finished_selected",
        ),
        "jobs with a text": f"{ADMIN}job/?q=noop",
        "jobs with a text that none has": f"{ADMIN}job/?q=nothing%20has%20this",
        "a job that waits": f"{ADMIN}job/{waiting}/change/",
        "a job that failed": f"{ADMIN}job/{failed}/change/",
        "failures, 1 hour": f"{ADMIN}job/failures/",
        "failures, 7 days": f"{ADMIN}job/failures/?hours=168",
        "failures of a tenant": f"{ADMIN}job/failures/?hours=168&tenant=tenant-00001",
        "failures of one task and error": f"{ADMIN}job/failures/group/?{group}",
        "the same, of a tenant": f"{ADMIN}job/failures/group/?{group}&tenant=tenant-00001",
        "sessions": f"{ADMIN}session/",
        "monitors": f"{ADMIN}concurrentjobmonitor/",
        "a monitor": f"{ADMIN}concurrentjobmonitor/{monitor}/change/",
        "workers": f"{ADMIN}worker/",
        "a worker": f"{ADMIN}worker/{worker}/change/",
        "task controls": f"{ADMIN}taskcontrol/",
        "schedules": "/admin/tenantqueue_schedules/schedule/",
        "late schedules": "/admin/tenantqueue_schedules/schedule/?trouble=late",
        "alert rules": "/admin/tenantqueue_alerts/alertrule/",
        "alerts": "/admin/tenantqueue_alerts/alert/",
        "retention rules": "/admin/tenantqueue_retention/retentionrule/",
        "routings": "/admin/tenantqueue_routing/routing/",
        "API tokens": "/admin/tenantqueue_api/apitoken/",
        "duties": f"{ADMIN}duty/",
        "changes": f"{ADMIN}change/",
    }


def _visit(client: Client, page: str | tuple[str, str], times: int) -> Sample:
    """Return the p95 of some requests, after one that is not measured.

    `page`: its address, or that of a list of jobs and the action on all that match.
    """
    path, action = (page, None) if isinstance(page, str) else page
    seen = [_request(client, path, action) for _ in range(times + 1)][1:]
    statements, longest = max(one.statements for one in seen), max(one.longest for one in seen)
    if not 0 < statements <= MOST_STATEMENTS:
        raise Incorrect(f"{path} makes {statements} statements: 1 to {MOST_STATEMENTS}")
    milliseconds = percentile([one.milliseconds for one in seen], 95)
    return Sample(milliseconds, note=f"{statements} statements, the longest {longest:.0f} ms")


def _request(client: Client, path: str, action: str | None) -> Seen:
    ours: list[float] = []
    connection.queries_log.clear()  # a full log forgets, and then counts nothing
    with CaptureQueriesContext(connection) as captured, timed_statements(ours):
        began = time.perf_counter()
        if action is None:
            response = client.get(path)
        else:
            response = client.post(path, {**FOR_ALL, "action": action})
        milliseconds = 1000 * (time.perf_counter() - began)
    if response.status_code != 200:
        raise Incorrect(f"{path} answers {response.status_code}")
    times = [1000 * float(query["time"]) for query in captured.captured_queries] + ours
    return Seen(milliseconds, len(times), max(times, default=0.0))


@contextmanager
def timed_statements(milliseconds: list[float]) -> Iterator[None]:
    """Time the statements of sql/, which Django does not see."""
    send = base.send_statement

    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            return send(*args, **kwargs)
        finally:
            milliseconds.append(1000 * (time.perf_counter() - began))

    with mock.patch.object(base, "send_statement", timed):
        yield
