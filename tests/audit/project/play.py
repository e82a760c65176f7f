"""Enqueue one misbehaviour and its innocent neighbours, wait for the ends, and count.

Reads names of misbehaviours, one a line, and answers each with a line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

import django

INNOCENT = 200
PATIENCE = 20.0
SUFFICIENT_ATTEMPTS = 9
FORGET = "-"
"""Asks to begin anew."""


def play(name: str) -> dict[str, Any]:
    """Run one misbehaviour among 200 innocent jobs; return how all of them ended."""
    from django.db import transaction

    from django_tenantqueue.models import Job

    from .misbehaviours import TABLE

    way = TABLE[name]
    with transaction.atomic():
        bad = enqueue_bad(way, way.jobs - way.jobs // 2)
        innocent = enqueue_innocent(way)
        bad += enqueue_bad(way, way.jobs // 2)
        innocent += enqueue_innocent(way)
    began = time.monotonic()
    unfinished = Job.objects.filter(pk__in=[*bad, *innocent], final=False)
    while unfinished.exists() and time.monotonic() < began + PATIENCE:
        time.sleep(0.02)
    return {
        "seconds": round(time.monotonic() - began, 2),
        "bad": tell(bad),
        "innocent": tell(innocent),
        "effects": count_effects(innocent),
        "found": differences(innocent),
    }


def enqueue_bad(way: Any, jobs: int) -> list[int]:
    """Enqueue the misbehaving task."""
    return way.task.using(tenant="guilty", max_attempts=1).enqueue_many([()] * jobs)


def enqueue_innocent(way: Any) -> list[int]:
    """Enqueue half of the innocent jobs. They have one attempt, unless a process dies."""
    from .innocent import KINDS, with_the_success

    options = {"tenant": "innocent", "max_attempts": SUFFICIENT_ATTEMPTS if way.kills else 1}
    if way.kills:
        return with_the_success.using(**options).enqueue_many([()] * (INNOCENT // 2))
    ids: list[int] = []
    for kind in KINDS:
        ids += kind.using(**options).enqueue_many([()] * (INNOCENT // 2 // len(KINDS)))
    return ids


def tell(ids: list[int]) -> dict[str, int]:
    """Count how jobs ended: the state, and class and message of the last error."""
    from django_tenantqueue.models import Job

    ends: Counter[str] = Counter()
    for job in Job.objects.filter(pk__in=ids):
        error = job.last_error
        said = f" {error['class']}: {error['message']}" if error and job.state == "error" else ""
        ends[job.state + said] += 1
    return dict(ends)


def count_effects(ids: list[int]) -> dict[int, int]:
    """Return how many jobs have how many effects, by the number of effects."""
    from .models import Effect

    by_job = Counter(Effect.objects.filter(job_id__in=ids).values_list("job_id", flat=True))
    return dict(Counter(by_job[job_id] for job_id in ids))


def differences(ids: list[int]) -> dict[str, int]:
    """Count what innocent jobs found that they should not."""
    from .innocent import EXPECTED
    from .models import Effect

    seen: Counter[str] = Counter()
    for found in Effect.objects.filter(job_id__in=ids).values_list("found", flat=True):
        seen.update(
            f"{key}: {found[key]}" for key, value in EXPECTED.items() if found[key] != value
        )
    return dict(seen)


def forget() -> None:
    """Delete all jobs and begin with two empty queues."""
    from django.core.management import call_command

    from django_tenantqueue.models import TenantQueue

    # ids go on: the server may hold the lock of a killed worker for a moment
    call_command("flush", interactive=False, verbosity=0, reset_sequences=False)
    for tenant, slots in (("guilty", 8), ("innocent", 50)):
        TenantQueue.objects.create(tenant=tenant, name="default", num_slots=slots)


def main() -> None:
    """Answer until the input ends."""
    django.setup()
    for line in sys.stdin:
        name = line.strip()
        sys.stdout.write(json.dumps(forget() if name == FORGET else play(name)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
