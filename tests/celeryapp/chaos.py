"""Jobs of many tenants, while the broker is emptied, stopped and restarted, and Celery workers and
dispatchers are killed; and the audit of what ran."""

from __future__ import annotations

import random
import signal
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psutil
from django.db import connection

from django_tenantqueue.models import Job
from tests.intervals import breaches, most_at_once
from tests.testapp.models import Effect, Interval

from .tasks import busy, effect

SLOTS = 3
TENANTS = [f"tenant {number}" for number in range(20)]
LONGEST = 60
"""Milliseconds of the longest job."""
KILL_SECONDS = 3.0


@dataclass
class Story:
    """What was done to the deployment."""

    kills: int = 0
    pool_kills: int = 0
    flushes: int = 0
    stops: int = 0
    dispatchers: int = 0
    seconds: float = 0.0
    troubles: list[str] = field(default_factory=list)


def enqueue(jobs: int) -> tuple[list[int], list[int]]:
    """Enqueue jobs, each fifth of them atomic; return the ids of all, and of the atomic ones."""
    chance = random.Random(11)
    every, atomic = [], []
    for tenant in TENANTS:
        share = jobs // len(TENANTS)
        calls = [(tenant, chance.uniform(0, LONGEST)) for _ in range(share - share // 5)]
        every += busy.using(tenant=tenant).enqueue_many(calls)
        atomic += effect.using(tenant=tenant).enqueue_many([tenant] * (share // 5))
    return every + atomic, atomic


def play(deployment: Any, ids: list[int], *, workers: int, timeout: float, steps: int) -> Story:
    """Make trouble until all jobs are finished; return what was done.

    `steps`: kills between two troubles of the broker.
    """
    story, chance, begun = Story(), random.Random(13), time.monotonic()
    dispatchers = [deployment.dispatch(), deployment.dispatch()]
    options = ("--pool=prefork", "--concurrency=2", "--without-mingle", "--without-gossip")
    crew = [deployment.work(*options) for _ in range(workers)]
    left = Job.objects.filter(pk__in=ids, final=False)
    step, next_at = 0, time.monotonic() + KILL_SECONDS
    while left.exists():
        assert time.monotonic() - begun < timeout, f"{left.count()} jobs are left: {story}"
        time.sleep(0.1)
        if time.monotonic() < next_at:
            continue
        next_at = time.monotonic() + KILL_SECONDS
        step += 1
        one = chance.randrange(workers)
        pool = _pool_of(crew[one].process.pid)
        if step % 2 and pool:
            with suppress(psutil.NoSuchProcess):
                chance.choice(pool).kill()
                story.pool_kills += 1
        else:
            crew[one].kill()
            crew[one] = deployment.work(*options)
            story.kills += 1
        if step % steps:
            continue
        trouble = (step // steps) % 4
        if trouble == 1:
            with suppress(Exception):  # a queue that is not there yet
                deployment.broker.flush()
                story.flushes += 1
        elif trouble == 2:
            deployment.broker.stop(signal.SIGTERM)
            time.sleep(1.0)
            deployment.broker.start()
            story.stops += 1
        elif trouble == 3:
            dispatchers[0].destroy()
            dispatchers = [dispatchers[1], deployment.dispatch()]
            story.dispatchers += 1
        else:
            deployment.broker.stop(signal.SIGKILL)
            deployment.broker.start()
            story.stops += 1
    story.seconds = time.monotonic() - begun
    return story


def _pool_of(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children()
    return []


def audit(ids: list[int], atomic: list[int]) -> dict[str, Any]:
    """Return what is wrong with the runs of these jobs; empty lists where nothing is."""
    jobs = list(Job.objects.filter(pk__in=ids).values_list("pk", "state"))
    found: dict[str, Any] = {
        "lost": sorted(set(ids) - {pk for pk, _ in jobs}),
        "not successful": [(pk, state) for pk, state in jobs if state != "success"],
    }
    effects = defaultdict(int)
    for job_id in Effect.objects.values_list("job_id", flat=True):
        effects[job_id] += 1
    found["effects"] = [(pk, effects[pk]) for pk in atomic if effects[pk] != 1]
    runs = defaultdict(list)
    for row in Interval.objects.filter(job_id__in=ids).order_by("started_at"):
        runs[row.job_id].append(row)
    found["overlaps"], by_tenant = [], defaultdict(list)
    for job_id, rows in runs.items():
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            # a killed run has no end: it was dead long before its job was rescued
            end = row.ended_at or row.started_at + timedelta(milliseconds=LONGEST)
            if following is not None and following.started_at < end:
                found["overlaps"].append((job_id, row.started_at, following.started_at))
            by_tenant[row.key].append((row.started_at, row.ended_at or row.started_at))
    found["never ran"] = [pk for pk in set(ids) - set(atomic) if pk not in runs]
    found["over the cap"] = {
        tenant: len(over) for tenant, spans in by_tenant.items() if (over := breaches(spans, SLOTS))
    }
    return found


def most_beside(ids: list[int]) -> int:
    spans = defaultdict(list)
    for row in Interval.objects.filter(job_id__in=ids, ended_at__isnull=False):
        spans[row.key].append((row.started_at, row.ended_at))
    return max((most_at_once(one) for one in spans.values()), default=0)


def longest_rescue() -> float:
    """Return the longest time, in seconds, from a run that was killed to the next one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(extract(epoch FROM next - started_at)) FROM ("
            " SELECT started_at, ended_at,"
            " lead(started_at) OVER (PARTITION BY job_id ORDER BY started_at) AS next"
            " FROM testapp_interval) runs WHERE ended_at IS NULL"
        )
        return float(cursor.fetchone()[0] or 0.0)
