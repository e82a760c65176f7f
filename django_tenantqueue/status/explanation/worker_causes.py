"""Whether any worker could run a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext

from ...models import Job, TenantQueue, Worker
from ...models.worker import SILENT, Role
from ...queries.fleet import count_claims_of_workers
from ..takers import Takers
from ..workers import LEAVING, WorkerState, state_of
from .answer import Cause, Code
from .words import target_of


def worker_causes(
    using: str, job: Job, queue: TenantQueue, now: datetime, *, ready: bool
) -> Iterator[Cause]:
    """Yield why no worker takes a job. `ready`: threads that are busy are a reason, too."""
    workers = list(Worker.objects.using(using).exclude(role=Role.RUNNER))
    states = {worker.pk: state_of(worker, now) for worker in workers}
    alive = [worker for worker in workers if states[worker.pk] != WorkerState.SILENT]
    start = gettext("Start one with “manage.py runworker”.")
    if not workers:
        yield Cause(Code.NO_WORKER, gettext("No worker runs."), start)
        return
    if not alive:
        told = ngettext(
            "No worker runs: %(count)d worker gave no sign of life for %(seconds)d s.",
            "No worker runs: %(count)d workers gave no sign of life for %(seconds)d s.",
            len(workers),
        )
        values = {"count": len(workers), "seconds": SILENT.total_seconds()}
        yield Cause(Code.NO_WORKER, told % values, start)
        return
    going_on = [worker for worker in alive if states[worker.pk] not in LEAVING]
    if not going_on:
        yield Cause(Code.WORKERS_LEAVE, gettext("Every worker drains or stops."), start)
        return
    taking = [worker for worker in going_on if Takers.of([worker]).serve(queue)]
    if not taking:
        yield _no_worker_takes(alive, going_on, queue)
        return
    if queue.executor is not None:
        yield from _down(taking)
        return
    yield from _full(using, job, taking, ready=ready)


def _down(dispatchers: list[Worker]) -> Iterator[Cause]:
    """Yield that the dispatchers of an executor have not been able to send jobs lately."""
    troubled = [worker for worker in dispatchers if is_down(worker)]
    if len(troubled) == len(dispatchers):
        told = gettext("Its dispatcher cannot send jobs: %s") % troubled[0].last_error[:200]
        remedy = gettext("Look at the broker. It is tried again every few seconds.")
        yield Cause(Code.NOT_SENT, told, remedy, target_of(troubled[0]))


def is_down(dispatcher: Worker) -> bool:
    """Whether its last heartbeat said that it cannot send jobs."""
    at = dispatcher.last_error_at
    return at is not None and dispatcher.heartbeat_at - at < timedelta(seconds=1)


def _no_worker_takes(alive: list[Worker], going_on: list[Worker], queue: TenantQueue) -> Cause:
    if queue.executor is not None:
        told = gettext("No dispatcher of the executor “%s” takes its queue.") % queue.executor
        command = f"manage.py runworker --dispatch {shlex.quote(queue.executor)}"
        return Cause(Code.NO_WORKER_TAKES, told, gettext("Start one: “%s”.") % command)
    told = ngettext(
        "The %(count)d worker that runs does not take queue “%(queue)s” of tenant “%(tenant)s” "
        "(its --queues, --exclude-queues or --tenants).",
        "None of the %(count)d workers that run takes queue “%(queue)s” of tenant “%(tenant)s” "
        "(their --queues, --exclude-queues or --tenants).",
        len(going_on),
    ) % {"count": len(going_on), "queue": queue.name, "tenant": queue.tenant}
    if Takers.of(alive).serve(queue):
        told += " " + gettext("Workers that do take it drain or stop.")
    command = f"manage.py runworker --queues {shlex.quote(queue.name)}"
    remedy = gettext("Start a worker without filters, or one that takes it: “%s”.") % command
    return Cause(Code.NO_WORKER_TAKES, told, remedy)


def _full(using: str, job: Job, taking: list[Worker], *, ready: bool) -> Iterator[Cause]:
    """Yield that the workers have no threads, or no coroutine slots, or that all are busy."""
    slots = {worker.pk: worker.async_slots if job.is_async else worker.threads for worker in taking}
    most = sum(slots.values())
    if not most:
        told = (
            gettext("It is a coroutine, and the workers that take its queue run none.")
            if job.is_async
            else gettext("It needs a thread, and the workers that take its queue have none.")
        )
        option = "--async-slots" if job.is_async else "--threads"
        remedy = gettext("Start a worker with “%s” above 0.") % option
        yield Cause(Code.NO_WORKER_OF_KIND, told, remedy)
        return
    if not ready:
        return
    held = count_claims_of_workers(using, slots, is_async=job.is_async)
    if any(held.get(pk, 0) < slots[pk] for pk in slots):
        return
    told = (
        gettext("All %d coroutine slots of the workers that take its queue are busy.")
        if job.is_async
        else gettext("All %d threads of the workers that take its queue are busy.")
    )
    remedy = gettext("It starts when one is free. Start more workers if that takes too long.")
    yield Cause(Code.WORKERS_FULL, told % most, remedy)
