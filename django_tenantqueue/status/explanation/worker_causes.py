"""Whether any worker could run a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from ...execution.outcome import UNKNOWN_CLASS
from ...models import Job, TenantQueue, Worker
from ...models.worker import SILENT, Role
from ...queries.fleet import HeldByWorker, count_claims_of_workers
from ..conditions import Code
from ..served_queues import Takers
from ..workers import LEAVING, WorkerState, state_of
from .answer import Cause, cause_of
from .names import target_of


def worker_causes(
    using: str, job: Job, queue: TenantQueue, now: datetime, *, ready: bool
) -> Iterator[Cause]:
    """Yield why no worker takes a job. `ready`: threads that are busy are a reason, too."""
    workers = list(Worker.objects.using(using).exclude(role=Role.RUNNER))
    states = {worker.pk: state_of(worker, now) for worker in workers}
    alive = [worker for worker in workers if states[worker.pk] != WorkerState.SILENT]
    if not workers:
        yield cause_of(Code.NO_WORKER)
        return
    if not alive:
        told = ngettext_lazy(
            "No worker runs: %(count)d worker has sent no heartbeat for %(seconds)d s.",
            "No worker runs: %(count)d workers have sent no heartbeat for %(seconds)d s.",
            "count",
        )
        values = {"count": len(workers), "seconds": SILENT.total_seconds()}
        yield cause_of(Code.NO_WORKER, values, told=told)
        return
    going_on = [worker for worker in alive if states[worker.pk] not in LEAVING]
    if not going_on:
        yield cause_of(Code.WORKERS_LEAVE)
        return
    taking = [worker for worker in going_on if Takers.of([worker]).serve(queue)]
    if not taking:
        yield _no_worker_takes(alive, going_on, queue)
        return
    if queue.executor is not None:
        yield from _down(taking)
        return
    taking = [worker for worker in taking if job.task not in (worker.unknown_tasks or ())]
    is_told = (job.last_error or {}).get("class") == UNKNOWN_CLASS
    if not taking and ready and not is_told:
        yield cause_of(Code.UNKNOWN_TASK, {"task": job.task})
        return
    yield from _full(using, job, taking, ready=ready)


def _down(dispatchers: list[Worker]) -> Iterator[Cause]:
    """Yield a cause if the dispatchers of an executor could not send jobs lately."""
    troubled = [worker for worker in dispatchers if is_down(worker)]
    if len(troubled) == len(dispatchers):
        values = {"error": troubled[0].last_error[:200]}
        yield cause_of(Code.NOT_SENT, values, target_of(troubled[0]))


def is_down(dispatcher: Worker) -> bool:
    """Whether its last heartbeat said that it cannot send jobs."""
    at = dispatcher.last_error_at
    return at is not None and dispatcher.heartbeat_at - at < timedelta(seconds=1)


def _no_worker_takes(alive: list[Worker], going_on: list[Worker], queue: TenantQueue) -> Cause:
    if queue.executor is not None:
        values = {
            "executor": queue.executor,
            "command": f"manage.py runworker --dispatch {shlex.quote(queue.executor)}",
        }
        told = _("No dispatcher of the executor “%(executor)s” takes its queue.")
        remedy = _("Start one: “%(command)s”.")
        return cause_of(Code.NO_WORKER_TAKES, values, told=told, remedy=remedy)
    taken = {
        "count": len(going_on),
        "queue": queue.name,
        "tenant": queue.tenant,
        "command": f"manage.py runworker --queues {shlex.quote(queue.name)}",
    }
    found = cause_of(Code.NO_WORKER_TAKES, taken)
    if not Takers.of(alive).serve(queue):
        return found
    leaving = gettext("The workers that take it are draining or stopping.")
    return replace(found, sentence=f"{found.sentence} {leaving}")


def _full(using: str, job: Job, taking: list[Worker], *, ready: bool) -> Iterator[Cause]:
    slots = {worker.pk: worker.async_slots if job.is_async else worker.threads for worker in taking}
    most = sum(slots.values())
    if not most:
        told = (
            _("It is a coroutine, and the workers that take its queue run none.")
            if job.is_async
            else None
        )
        option = "--async-slots" if job.is_async else "--threads"
        yield cause_of(Code.NO_WORKER_OF_KIND, {"option": option}, told=told)
        return
    if not ready:
        return
    held = dict.fromkeys(slots, HeldByWorker()) | count_claims_of_workers(using, slots)
    if any(held[pk][job.is_async] < most for pk, most in slots.items()):
        return
    told = (
        _("All %(most)d coroutine slots of the workers that take its queue are busy.")
        if job.is_async
        else None
    )
    yield cause_of(Code.WORKERS_FULL, {"most": most}, told=told)
