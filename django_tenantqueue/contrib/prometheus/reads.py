"""Reads the metrics. No statement walks the history or the whole backlog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from ...conf import get_settings
from ...models.worker import THREADS, Role
from ...queries.control import QueueLoad
from ...queries.fleet import REASONS, BusyQueue, JobCounts
from ...queries.lists import read_in_order
from ...status.busy_queues import walk_busy
from ...status.conditions import Look, conditions, problems
from ...status.display_limits import LISTED, READ, TOTAL_COUNTED_TO
from ...status.fleet_report import Need, need_of
from ...status.held import oldest_of_gates
from ...status.queue_loads import loads, sum_of_slots
from ...status.workers import WorkerState
from .totals import Total, read_totals


@dataclass(frozen=True, slots=True)
class Metrics:
    """The fleet at one moment, and the totals since counting began.

    Jobs are counted up to TOTAL_COUNTED_TO of each kind. `totals` is empty when figures are off,
    and before the first maintenance. `slots`: of all queues that are not paused and have a limit.
    `held_wait_seconds`: by gate. `blocked`: queues, by reason. `queues`: those with the longest
    waits.
    """

    counts: JobCounts
    held_wait_seconds: Mapping[str, float]
    blocked: Mapping[str, Sequence[BusyQueue]]
    need: Need
    workers: Mapping[WorkerState, int]
    slots: int
    queues: Sequence[BusyQueue]
    loads: Mapping[int, QueueLoad]
    totals: Sequence[Total]
    conditions: Mapping[str, bool]
    """Whether each condition of the fleet holds, by code."""

    @property
    def oldest_wait_seconds(self) -> float:
        """Longest wait of a ready job; 0 without any."""
        return max((queue.wait_seconds or 0.0 for queue in self.queues), default=0.0)

    @property
    def wanted_threads(self) -> int:
        """Threads (or coroutine slots) needed for running and startable jobs."""
        return self.need.running + self.need.startable

    @property
    def wanted_workers(self) -> int:
        """Worker processes needed for these, of the mean size of the active ones."""
        active = self.workers[WorkerState.WORKING] + self.workers[WorkerState.IDLE]
        each = self.need.threads / active if active else THREADS
        return ceil(self.wanted_threads / each)


def read_metrics(using: str) -> Metrics:
    with read_in_order(using):
        busy = walk_busy(using, listed=LISTED, visits=READ, blocked=TOTAL_COUNTED_TO)
        found = loads(using, [queue.id for queue in busy.queues[:LISTED]])
        look = Look(using, busy=busy)
        holding = {p.code for p in problems(look)}
        need = need_of(using, look.states, busy.queues)
    by_state = Counter(state for state, row in look.states if row.role == Role.WORKER)
    return Metrics(
        counts=look.counts,
        held_wait_seconds=oldest_of_gates(look.held),
        blocked={r: [q for q in busy.queues if q.blocked == r] for r in REASONS},
        need=need,
        workers={state: by_state[state] for state in WorkerState},
        slots=sum_of_slots(using),
        queues=busy.queues[:LISTED],
        loads=found,
        totals=read_totals(using) if get_settings().figures else [],
        conditions={
            condition.code: condition.code in holding
            for condition in conditions()
            if condition.find is not None
        },
    )
