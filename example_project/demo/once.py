"""Run a fixed batch of reports to the end and check it."""

import os
import time
from collections.abc import Callable

from django.core.management.base import CommandError
from django.db.models import Q

from .preparing import timed
from .processes import Processes

THREADS = 6
LIMIT_SECONDS = 600.0
LOOK_SECONDS = 0.5


def run_once(jobs: int, processes: int) -> int:
    """Request `jobs` reports, run them with a worker, print the table; return the exit code."""
    from django_tenantqueue.models import Job
    from example_project.flights import seeding
    from example_project.flights.batches import as_text, check, count_unfinished

    _refuse_blocked_queues()
    with Processes() as running:
        name = f"demo-{os.getpid()}"
        with timed("Worker") as tell:
            start_worker(running, name, processes)
            tell(f"{processes} processes with {THREADS} threads each")
        with timed("Requests") as tell:
            ledger = seeding.seed_batch(jobs)
            batch = ledger.save()
            tell(f"{len(ledger.notes)} reports requested for all airlines")
        ids = [note.job_id for note in ledger.notes]
        with timed("Reports") as tell:
            _wait(running, lambda: count_unfinished(ids))
            ended = Job.objects.finished().filter(pk__in=ids).count()
            tell(f"{ended} of them ended")
        code = running.stop("worker")
    findings = check(batch, requested=jobs)
    if code != 0:
        findings.problems.append(f"the worker ended with exit code {code}")
    print(f"\n{as_text(findings)}\n")
    if findings.problems:
        print("FAILED: something was lost, or a slot limit was exceeded.")
        return 1
    print(
        f"All {len(ids)} reports ran as often and ended as expected, and never more at once than "
        "their queue\nhas slots. This compares the seeder's count, the reports' own records and "
        "the job table."
    )
    return 0


def start_worker(running: Processes, name: str, processes: int) -> None:
    """Start a worker and wait until all its processes have registered."""
    from django_tenantqueue.models import Worker

    running.start(
        "worker",
        "runworker",
        f"--processes={processes}",
        f"--threads={THREADS}",
        f"--name={name}",
        "--shutdown-timeout=10",
    )
    running.wait_until(
        lambda: Worker.objects.filter(name__startswith=f"{name}.").count() >= processes,
        "the worker to start",
    )


def _refuse_blocked_queues() -> None:
    from django_tenantqueue.models import TenantQueue
    from example_project.flights import plans
    from example_project.flights.models import Airline

    queues = TenantQueue.objects.filter(
        tenant__in=Airline.objects.values("pk"), name__in=[plans.REPORTS, plans.HEAVY]
    )
    blocked = queues.filter(Q(paused=True) | Q(retired=True) | Q(num_slots=0))
    if blocked:
        names = ", ".join(f"{queue.tenant}/{queue.name}" for queue in blocked)
        raise CommandError(
            "Queues are paused, retired or without slots, so the batch would never end: "
            f"{names}. Change them in the admin."
        )


def _wait(running: Processes, unfinished: Callable[[], int]) -> None:
    """Wait until all jobs have ended, for at most LIMIT_SECONDS."""
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end and unfinished():
        running.check()
        time.sleep(LOOK_SECONDS)
