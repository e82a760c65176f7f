"""What the cases work with: a database, workers, meters, and checks that no job was lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import environ
import psycopg
from django.core.management import call_command
from django.db import connections

from django_tenantqueue.models import TenantQueue
from django_tenantqueue.operations.queues import forget_queues
from django_tenantqueue.queries.enqueue import wake_any_workers

from .fleet import Fleet
from .meter import Meter, Spender, wait_for_quiet
from .results import Incorrect
from .server import APPLICATION, Server
from .workers import Workers

UNLIMITED = None
"""Slots of a queue that is not meant to be limited."""
STALL_SECONDS = 60.0
"""Seconds without an end after which jobs count as lost."""
LOOK_SECONDS = 0.03
SPARE_CONNECTIONS = 15
"""Connections that a fleet leaves to the benchmark itself."""

Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class Finished:
    """What the job rows say after a run."""

    jobs: int
    seconds: float
    """From the first claim to the last finish, by the database's clock."""

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / max(1e-9, self.seconds)


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a body wrote; times in nanoseconds of CLOCK_MONOTONIC."""

    tenant: int
    number: int
    start: int
    end: int


class Bench:
    """One run of the benchmarks."""

    def __init__(
        self,
        server: Server,
        directory: Path,
        *,
        repeat: int,
        quick: bool,
        patience: float = 0.0,
    ) -> None:
        self.server = server
        self.directory = directory
        self.repeat = repeat
        self.quick = quick
        self.patience = patience
        self._urls: dict[str, str] = {}
        self._url = ""
        self._connection: psycopg.Connection[Any] | None = None
        self._numbers = count(1)
        self.log = directory / "log-0"
        """The file that bodies write to."""

    def size(self, full: int, quick: int) -> int:
        """Return the size of something in this run."""
        return quick if self.quick else full

    def rounds(self, measure: Callable[[], Got]) -> list[Got]:
        """Measure as often as was asked for."""
        return [measure() for _ in range(self.repeat)]

    # the database

    def use(self, name: str) -> bool:
        """Work on the database of this name from now on; True when it was made by this call."""
        self.close()
        made = name not in self._urls
        if made:
            self._urls[name] = self.server.create_database(name)
        self._url = self._urls[name]
        settings = environ.Env.db_url_config(self._url)
        connections.settings["default"]["NAME"] = settings["NAME"]
        connections["default"].settings_dict["NAME"] = settings["NAME"]
        if made:
            call_command("migrate", verbosity=0)
        return made

    @property
    def url(self) -> str:
        """The URL of the current database."""
        return self._url

    def close(self) -> None:
        """Close the connections to the current database."""
        connections.close_all()
        forget_queues()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def db(self) -> psycopg.Connection[Any]:
        """A connection in autocommit mode, beside Django's, for looking on without disturbing."""
        if self._connection is None:
            self._connection = self.connect()
            # A sequential scan would walk over everything that has been finished.
            self._connection.execute("SET enable_seqscan = off; SET jit = off")
        return self._connection

    def connect(self) -> psycopg.Connection[Any]:
        """Open one more connection to the current database."""
        return psycopg.connect(self._url, autocommit=True, application_name=APPLICATION)

    def value(self, query: str, *params: object) -> Any:
        """Return the first column of the first row."""
        row = self.db.execute(query.encode(), params).fetchone()
        assert row is not None, query
        return row[0]

    def reset(self, *, history: bool = True) -> None:
        """Empty the tables, the history only when `history` says so, and write a checkpoint.

        The checkpoint comes before the jobs are put in: their pages are then new to the log, and
        the figures hold no full-page images that depend on when the last checkpoint was.
        """
        self.db.execute(
            "TRUNCATE tenantqueue_job_hot, tenantqueue_tenantqueue, tenantqueue_uniquekey, "
            "tenantqueue_worker"
        )
        if history:
            self.db.execute("TRUNCATE tenantqueue_job_history")
        forget_queues()
        self.server.checkpoint()

    def vacuum(self) -> None:
        """Give the planner its statistics, so that autovacuum need not come while measuring."""
        for table in ("tenantqueue_job_hot", "tenantqueue_tenantqueue", "tenantqueue_worker"):
            self.db.execute(f"VACUUM (ANALYZE) {table}".encode())

    def make_queues(
        self, tenants: Sequence[str], *, num_slots: int | None = UNLIMITED, paused: bool = True
    ) -> list[TenantQueue]:
        """Make a queue for each tenant; paused, so that nothing starts before resume()."""
        return TenantQueue.objects.bulk_create(
            TenantQueue(tenant=tenant, num_slots=num_slots, paused=paused) for tenant in tenants
        )

    def resume(self) -> None:
        """Let the jobs of all queues run, and tell every worker."""
        TenantQueue.objects.filter(paused=True).update(paused=False)
        wake_any_workers("default", most=1000)

    # workers

    def workers(
        self, *, commands: int = 1, processes: int = 1, options: Sequence[str] = ()
    ) -> Workers:
        """Start workers on the current database. Use as a context manager."""
        return Workers(
            commands,
            processes,
            options=options,
            url=self._url,
            log=self.log,
            directory=self.directory,
        )

    def fleet(
        self, workers: int, *, threads: int = 1, seconds: float, supervised: bool = False
    ) -> Fleet:
        """Start many workers on the current database, whose jobs take `seconds` and do nothing.

        Use as a context manager.
        """
        needed = workers * (1 + supervised) + SPARE_CONNECTIONS
        allowed = int(self.value("SHOW max_connections"))
        if allowed < needed:
            raise RuntimeError(f"max_connections is {allowed}: {needed} are needed")
        return Fleet(
            workers,
            url=self._url,
            directory=self.directory,
            threads=threads,
            seconds=seconds,
            supervised=supervised,
        )

    def wait_until_idle(self, workers: Workers | Fleet) -> None:
        """Wait until all children have signed on and announced that they sleep."""
        workers.wait_for(
            lambda: (
                self.value("SELECT count(*) FROM tenantqueue_worker WHERE sleeping_until > now()")
                == workers.children_wanted
            ),
            "all workers are idle",
        )
        time.sleep(0.2)
        self.settle()

    def settle(self) -> None:
        """Wait until other programs leave the machine alone, if that was asked for."""
        if self.patience:
            wait_for_quiet(self.patience)

    def meter(self, workers: Spender | None = None, *, beside: Spender | None = None) -> Meter:
        """Start to count costs."""
        return Meter(self.server, workers, beside=beside)

    def wait_until_done(self, workers: Workers | Fleet) -> None:
        """Wait until no job is left; raise Incorrect when they stop ending."""
        last: tuple[int | None, int | None] = (None, None)
        since = time.monotonic()
        while True:
            waiting, active = self._left()
            if not waiting and not active:
                break
            workers.check()
            if (waiting, active) != last:
                last, since = (waiting, active), time.monotonic()
            elif time.monotonic() - since > STALL_SECONDS:
                raise Incorrect(f"jobs are left, and none ends: {self.states()}")
            time.sleep(LOOK_SECONDS)

    def _left(self) -> tuple[int | None, int | None]:
        row = self.db.execute(
            "SELECT (SELECT id FROM tenantqueue_job_hot WHERE state = 'ready' "
            "ORDER BY lane, queue_id, priority, id LIMIT 1), "
            "(SELECT queue_id FROM tenantqueue_job_hot "
            "WHERE state IN ('queued', 'running') LIMIT 1)"
        ).fetchone()
        assert row is not None
        waiting, active = row
        return waiting, active

    # what became of the jobs

    def states(self) -> dict[str, int]:
        """Return how many jobs are in each state."""
        return dict(
            self.db.execute("SELECT state, count(*) FROM tenantqueue_job GROUP BY 1").fetchall()
        )

    def check_finished(self, expected: int) -> Finished:
        """Return what ran. Raises Incorrect unless each job succeeded, once, in one claim."""
        row = self.db.execute(
            "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE state = 'success'), "
            "max(claim_seq), extract(epoch FROM max(finished_at) - min(queued_at))::float8 "
            "FROM tenantqueue_job_history"
        ).fetchone()
        assert row is not None
        rows, distinct, succeeded, claims, seconds = row
        if not rows == distinct == succeeded == expected or claims != 1:
            raise Incorrect(
                f"{expected} jobs were put in; {rows} ended, {distinct} different ones, "
                f"{succeeded} well, claimed up to {claims} times; all states: {self.states()}"
            )
        return Finished(expected, seconds)

    def row_intervals(self) -> Iterator[tuple[int, float, float]]:
        """Yield (queue, queued_at, finished_at) of all ended jobs."""
        yield from self.db.execute(
            "SELECT queue_id, extract(epoch FROM queued_at)::float8, "
            "extract(epoch FROM finished_at)::float8 FROM tenantqueue_job_history"
        )

    # the log of the bodies

    def new_log(self) -> Path:
        """Make the workers that are started from now on write to a new file; return it."""
        self.log.unlink(missing_ok=True)
        self.log = self.directory / f"log-{next(self._numbers)}"
        return self.log


def read_log(path: Path) -> list[LogLine]:
    """Return what the bodies wrote; a line that is still being written is left out."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            lines.append(LogLine(*map(int, line.split())))
    return lines
