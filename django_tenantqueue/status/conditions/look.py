"""The fleet at one moment, as conditions read it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple
from datetime import datetime
from functools import cached_property

from ...conf import get_settings
from ...execution.outcome import UNKNOWN_CLASS
from ...models import Mute, Worker
from ...models.worker import Role
from ...queries import fleet as queries
from ...queries.figures import FailingTask, list_failing_tasks
from ...queries.fleet import (
    BusyQueue,
    HeldJobs,
    JobCounts,
    RunningClaim,
    StuckLine,
    UnknownJobs,
)
from ...queries.workers import connection_budget
from ..busy_queues import Busy, busy_of_tenants, walk_busy
from ..deaths import Death, list_deaths
from ..display_limits import LISTED, NAMED, TOTAL_COUNTED_TO, VISITED
from ..held import read_held, read_held_of
from ..job_pages import queue_ids
from ..queue_loads import untaken_queues
from ..served_queues import Takers, read_takers
from ..thresholds import DIED_WITHIN, FAILED_WITHIN, FAILING_LEAST, FAILING_SHARE
from ..workers import LEAVING, DutyReport, WorkerState, list_duties, list_running, state_of
from .muting import read_mutes

LEAVING_OR_SILENT = (*LEAVING, WorkerState.SILENT)


class Look:
    """What there is at the moment. Each part is read at most once, when it is asked for.

    No read grows with the history or the backlog. `tenants`: only of these; None: of all.
    """

    def __init__(
        self,
        using: str,
        tenants: Collection[str] | None = None,
        *,
        now: datetime | None = None,
        claims: int = 1,
        held: list[HeldJobs] | None = None,
        busy: Busy | None = None,
    ) -> None:
        """`now`: the database's clock if None. `claims`: how many of each worker are read.

        `held`, `busy`: where the caller has read these.
        """
        self.using = using
        self.tenants = tenants
        self._now = now
        self._claims = claims
        if held is not None:
            self.held = held
        if busy is not None:
            self.busy = busy

    @cached_property
    def counts(self) -> JobCounts:
        """How many jobs there are, up to TOTAL_COUNTED_TO of each kind."""
        return queries.count_jobs(self.using, most=TOTAL_COUNTED_TO)

    @property
    def now(self) -> datetime:
        """When it is."""
        return self._now or self.counts.read_at

    @cached_property
    def claims(self) -> dict[int | None, list[RunningClaim]]:
        """The claims by their workers' ids, the longest of each.

        Read before the workers: that of a claim which is made in between is found all the same.
        """
        found: dict[int | None, list[RunningClaim]] = {}
        for claim in list_running(self.using, most=self._claims):
            found.setdefault(claim.worker_id, []).append(claim)
        return found

    @cached_property
    def workers(self) -> list[Worker]:
        """All workers, by host."""
        self.claims  # noqa: B018 - first
        return list(Worker.objects.using(self.using).order_by("host", "id"))

    @cached_property
    def states(self) -> list[tuple[WorkerState, Worker]]:
        """The workers, each with what it does."""
        return [(state_of(row, self.now, self.jobs_of(row)), row) for row in self.workers]

    def jobs_of(self, worker: Worker) -> int:
        """Return how many jobs a worker holds."""
        claims = self.claims.get(worker.pk)
        return claims[0].of_worker if claims else 0

    @cached_property
    def strays(self) -> list[RunningClaim]:
        """Claims of worker processes that have no row any more."""
        known = {row.pk for row in self.workers}
        return [
            claim
            for worker_id, claims in self.claims.items()
            if worker_id not in known
            for claim in claims
        ]

    @cached_property
    def duties(self) -> list[DutyReport]:
        """The maintenance."""
        return list(list_duties(self.using))

    @cached_property
    def lines(self) -> list[StuckLine]:
        """Lines of held jobs that move no more, of all tenants."""
        return queries.list_stuck_lines(self.using, most=VISITED) if self._may_hold else []

    @cached_property
    def held(self) -> list[HeldJobs]:
        """What gates hold, the longest waits: of `tenants`."""
        if self.tenants is not None:
            return read_held_of(self.using, queue_ids(self.using, tenants=self.tenants))
        return read_held(self.using) if self._may_hold else []

    @property
    def _may_hold(self) -> bool:
        """Whether gates hold jobs, as far as the counts tell."""
        return self.tenants is not None or any(astuple(self.counts.held))

    @cached_property
    def busy(self) -> Busy:
        """Queues with ready or active jobs: of `tenants`."""
        if self.tenants is not None:
            return busy_of_tenants(self.using, self.tenants)
        return walk_busy(self.using, listed=LISTED)

    @cached_property
    def ready(self) -> list[BusyQueue]:
        """Those with ready jobs, by tenant and name."""
        return sorted(self.busy.waiting, key=lambda queue: (queue.tenant, queue.name))

    @cached_property
    def takers(self) -> Takers:
        """The queues that workers serve."""
        if self.tenants is not None:
            return read_takers(self.using)
        going_on = [row for state, row in self.states if state not in LEAVING_OR_SILENT]
        return Takers.of(row for row in going_on if row.role != Role.RUNNER)

    @cached_property
    def unknown(self) -> list[UnknownJobs]:
        """Jobs whose tasks no worker knows."""
        return queries.list_unknown_tasks(self.using, most=VISITED, error_class=UNKNOWN_CLASS)

    @cached_property
    def failing(self) -> list[FailingTask]:
        """Tasks that fail."""
        return list_failing_tasks(
            self.using,
            since=self.now - FAILED_WITHIN,
            least=FAILING_LEAST,
            share=FAILING_SHARE,
            most=NAMED,
        )

    @cached_property
    def deaths(self) -> list[Death]:
        """Workers that died lately."""
        return list_deaths(self.using, self.now - DIED_WITHIN)

    @cached_property
    def unserved(self) -> list[tuple[str | None, str]]:
        """Queues without ready jobs that no worker takes, while workers run; tenant None: any."""
        if all(state in LEAVING_OR_SILENT for state, _ in self.states):
            return []
        ready = {(queue.tenant, queue.name) for queue in self.ready}
        found = untaken_queues(self.using, self.takers, most=VISITED)
        return [queue for queue in found if queue not in ready]

    @cached_property
    def mutes(self) -> list[Mute]:
        """What operators have muted: of `tenants` alone. Read when there is a problem."""
        return read_mutes(self.using, self.tenants, VISITED)

    @cached_property
    def connections(self) -> tuple[int, int]:
        """The connections that the server allows, and those that the workers may open."""
        return (0, 0) if get_settings().pooler else connection_budget(self.using)
