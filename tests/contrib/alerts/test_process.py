"""Each kind of alert is opened, told and resolved, with real workers and receivers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from django_tenantqueue import Serial
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, Session
from django_tenantqueue.operations import control
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.operations.session_control import resume_sessions
from django_tenantqueue.worker.connection import connect
from tests.process.receivers import SECRET, HttpReceiver, Mailbox, http_receiver, smtp_receiver
from tests.process.workers import Workers, make_queue, wait_until
from tests.testapp.tasks import fail_for_good, noop

NEEDS = "schedules"
SOON = {
    "ALERTS": {"INTERVAL": 0.3},
    "BACKOFF_BASE": 0.1,
    "BACKOFF_MAX": 0.3,
    "HTTP": {"ALLOWED_HOSTS": ["127.0.0.1"]},
}
DELIVERIES = "django_tenantqueue.alerts.deliver"


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    with smtp_receiver() as made:
        monkeypatch.setenv("TEST_SMTP_PORT", str(made.port))
        yield made


def rule_on(kind: str, receiver: HttpReceiver, **columns: Any) -> AlertRule:
    return make_alert_rule(
        kind, kind, webhook_url=receiver.url, webhook_secret=SECRET, repeat_minutes=None, **columns
    )


def wait_for(receiver: HttpReceiver, *told: tuple[str, str, str]) -> None:
    wait_until(lambda: set(told) <= set(receiver.told), what=f"all of {told} is told")


KINDS = (
    *("queue_backlog", "queue_late", "no_worker_takes", "jobs_held", "task_failing"),
    *("job_failed", "schedule_late", "schedule_failing", "session_halted", "monitor_stopped"),
    "worker_died",
)
"""Conditions with a threshold, or with many objects."""


def assert_each_once(receiver: HttpReceiver) -> None:
    """Check that nothing is told twice, by whatever requests."""
    assert len(receiver.told) == len(set(receiver.told))
    assert len(receiver.requests) == len(set(receiver.requests))


@pytest.mark.heavy
def test_each_kind_is_told_when_it_opens_and_when_it_is_resolved(
    workers: Workers, receiver: HttpReceiver, mailbox: Mailbox
) -> None:
    thresholds = {"queue_backlog": 5, "queue_late": 0, "no_worker_takes": 0, "jobs_held": 0}
    for kind in KINDS:
        rule_on(kind, receiver, emails="ops@example.com", threshold=thresholds.get(kind))
    AlertRule.objects.filter(kind="queue_backlog").update(queue="full")
    AlertRule.objects.filter(kind="queue_late").update(queue="slow")
    AlertRule.objects.filter(kind="no_worker_takes").update(queue="unserved")
    for name in ("full", "slow"):
        make_queue("acme", name, paused=True)
    ids = [noop.using(tenant="acme", queue="full").delay().pk for _ in range(6)]
    ids.append(noop.using(tenant="acme", queue="slow").delay().pk)
    noop.using(tenant="acme", queue="unserved").delay()
    for _ in range(10):
        fail_for_good.using(tenant="acme").delay()
    fail_for_good.using(tenant="acme", session=Serial("s", on_failure="halt")).delay()
    noop.using(tenant="acme", session="s").delay()
    monitor = ConcurrentJobMonitor.objects.start(
        "import",
        [fail_for_good.call(), noop.call()],
        parallel=1,
        tenant="acme",
        stop_after_failures=1,
    )
    schedule = make_schedule("nightly", noop, "0 0 1 1 *", tenant="acme")
    late = timezone.now() - timedelta(minutes=3)
    Schedule.objects.filter(pk=schedule.pk).update(tick_at=late, next_at=late)
    broken = make_schedule("broken", noop, "0 0 1 1 *", tenant="acme")
    failing = Schedule.objects.filter(pk=broken.pk)
    failing.update(failures=3, last_error="ValueError: no", last_error_at=timezone.now())
    objects = {
        "queue_backlog": "acme / full",
        "queue_late": "acme / slow",
        "no_worker_takes": "acme / unserved",
        "task_failing": fail_for_good.name,
        "job_failed": f"{fail_for_good.name}: Permanent",
        "schedule_late": "acme / nightly",
        "schedule_failing": "acme / broken",
        "session_halted": "acme / s",
        "monitor_stopped": f"acme / import #{monitor.pk}",
        "jobs_held": "acme / default: session",
        "worker_died": "gone (host)",
    }
    died = Change.objects.create(
        action=Change.Action.DIE,
        source=Change.Source.WORKER,
        object_kind=Change.Kind.WORKER,
        object_label="gone",
        object_ids=[0],
        object_count=1,
        after={"host": "host", "cause": "killed"},
    )
    with connect("default", "test") as editor, editor.transaction():
        editor.execute("SELECT FROM tenantqueue_schedule FOR UPDATE")  # the leader passes it over
        workers.start("--exclude-queues=unserved", settings=SOON)
        wait_for(receiver, *((kind, "open", found) for kind, found in objects.items()))

    control.cancel(ids)
    workers.start("--queues=unserved", settings=SOON)
    resume_sessions(Session.objects.values_list("pk", flat=True))
    cancel_monitor(monitor.pk)
    failing.update(failures=0)
    Change.objects.filter(pk=died.pk).update(made_at=timezone.now() - timedelta(hours=3))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_figure SET at = at - interval '3 hours'")

    wait_for(receiver, *((kind, "resolved", found) for kind, found in objects.items()))
    wait_until(lambda: len(mailbox.mails) == len(receiver.messages), what="e-mails have arrived")
    assert_each_once(receiver)
    assert len(receiver.told) == 2 * len(KINDS)
    assert objects.keys() == set(KINDS)
    for kind in KINDS:
        assert f"{kind}: 1 open" in mailbox.subjects
        assert f"{kind}: 1 resolved" in mailbox.subjects
    assert objects["queue_late"] in "".join(mail.get_content() for mail in mailbox.mails)
    assert {mail["To"] for mail in mailbox.mails} == {"ops@example.com"}


def test_alert_is_told_once_when_the_leader_is_killed_before_the_delivery(
    workers: Workers, receiver: HttpReceiver
) -> None:
    rule_on("queue_late", receiver, threshold=0)
    make_queue("acme", "slow", paused=True)
    noop.using(tenant="acme", queue="slow").delay()
    leader = workers.start("--exclude-queues=alerts", settings=SOON)
    wait_until(lambda: Job.objects.filter(task=DELIVERIES).exists(), what="the alert is open")
    leader.send_all(signal.SIGKILL)
    assert receiver.requests == []

    workers.start(settings=SOON)
    wait_for(receiver, ("queue_late", "open", "acme / slow"))
    checked = AlertRule.objects.get().checked_at
    wait_until(lambda: AlertRule.objects.get().checked_at > checked, what="the next one checks")

    assert_each_once(receiver)
    assert Alert.objects.count() == len(receiver.told) == 1


@pytest.mark.heavy
def test_alerts_are_told_once_when_two_workers_take_turns_to_lead(
    workers: Workers, receiver: HttpReceiver
) -> None:
    rule_on("queue_late", receiver, threshold=0)
    for number in range(10):
        make_queue("acme", f"slow{number}", paused=True)
    runners = [workers.start(settings=SOON) for _ in range(2)]
    for number in range(10):
        noop.using(tenant="acme", queue=f"slow{number}").delay()
        if number == 4:
            runners[0].send_all(signal.SIGKILL)

    told = [("queue_late", "open", f"acme / slow{number}") for number in range(10)]
    wait_for(receiver, *told)

    assert_each_once(receiver)
    assert sorted(receiver.told) == told
