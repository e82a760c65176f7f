"""Each tick is run once, with real workers, and when the leader is killed in the middle of it."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

from django.utils import timezone

from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.schedules.services import tune_schedule
from django_tenantqueue.models import Job
from tests.process.workers import Workers, make_queue, wait_until
from tests.testapp.tasks import echo

SCHEDULES = 20_000 if os.environ.get("TENANTQUEUE_FULL_SIZE") else 1500
DUE = SCHEDULES // 10 if os.environ.get("TENANTQUEUE_FULL_SIZE") else 500


def make_schedules() -> None:
    """Make schedules, DUE of them due at once in a moment."""
    later = timezone.now() + timedelta(days=1)
    Schedule.objects.bulk_create(
        Schedule(
            name=f"s{number}",
            task=echo.name,
            args=[number],
            kind="cron",
            expression="0 0 1 1 *",
            tick_at=later,
            next_at=later,
        )
        for number in range(SCHEDULES)
    )
    moment = timezone.now() + timedelta(seconds=1)
    due = Schedule.objects.order_by("pk").values("pk")[:DUE]
    Schedule.objects.filter(pk__in=due).update(tick_at=moment, next_at=moment)


def test_each_tick_runs_once_when_the_leader_is_killed_in_it(workers: Workers) -> None:
    make_queue("", num_slots=None)
    first = workers.start("--threads=2")
    workers.start("--threads=2")
    make_schedules()
    jobs = Job.objects.filter(task=echo.name)
    wait_until(lambda: jobs.count() > 0, what="some ticks are fired")

    first.send_all(signal.SIGKILL)
    killed_after = jobs.count()
    wait_until(lambda: jobs.count() >= DUE, what="all ticks are fired")
    wait_until(lambda: not Job.objects.unfinished().exists(), what="all jobs have ended")

    assert killed_after < DUE
    assert sorted(job.args["args"][0] for job in jobs) == list(range(DUE))
    fired = Schedule.objects.filter(last_job_id__isnull=False)
    assert fired.count() == DUE


def test_edit_acts_without_a_restart(workers: Workers) -> None:
    row = make_schedule("s", echo, "0 0 1 1 *", args=["edited"])
    workers.start()

    tune_schedule(row.pk, kind="interval", expression="1s")

    jobs = Job.objects.filter(task=echo.name, state="success")
    wait_until(lambda: jobs.count() >= 3, what="the edited schedule runs each second")
    tune_schedule(row.pk, enabled=False)
    row.refresh_from_db()
    assert row.last_tick_at is not None
    assert row.last_tick_at.microsecond == 0
