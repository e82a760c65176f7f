"""The saboteurs. Each works in a thread of its own, by dice of its own."""

from __future__ import annotations

import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any, ClassVar

import psycopg

from tests.intervals import Limits

from .fleet import Fleet
from .link import Link
from .log import Log
from .plan import Scale
from .server import Server
from .watch import Watch

HARNESS = "chaos harness"
"""Application name of the run's own connections, which are left alone."""


class Saboteur(ABC, threading.Thread):
    """Does some harm again and again, until it is stopped."""

    kind: ClassVar[str]

    def __init__(self, seed: int, log: Log, scale: Scale) -> None:
        super().__init__(name=self.kind, daemon=True)
        self.random = Random(f"{seed} {self.kind}")
        self.log = log
        self.scale = scale
        self.stopped = threading.Event()
        self.failure: BaseException | None = None

    @abstractmethod
    def pause_seconds(self) -> float:
        """Return how long to wait for the next time."""

    @abstractmethod
    def act(self) -> str:
        """Do it; say what was done, "" for nothing."""

    def run(self) -> None:
        try:
            while not self.stopped.wait(self.pause_seconds()):
                try:
                    said = self.act()
                except psycopg.OperationalError as error:
                    self.log.note("in vain", f"{self.kind}: {str(error).splitlines()[0]}")
                    continue
                if said:
                    self.log.note(self.kind, said)
        except BaseException as error:  # noqa: BLE001 told at the end of the run
            self.failure = error


class Killer(Saboteur):
    """Sends SIGKILL to a child, to a supervisor alone, or to a whole group."""

    kind = "kill"

    def __init__(self, *given: Any, fleet: Fleet, watch: Watch) -> None:
        super().__init__(*given)
        self._fleet = fleet
        self._watch = watch

    def pause_seconds(self) -> float:
        return 2.0

    def act(self) -> str:
        (victim,) = self.random.choices(["child", "supervisor", "group"], [6, 1, 2])
        supervisor = self.random.choice(self._fleet.supervisors)
        children = self._watch.children()
        if victim == "child":
            if not children:
                return ""
            child = self.random.choice(children)
            return f"kill -9 of child {child.pid}" if child.send(signal.SIGKILL) else ""
        supervisor.send(signal.SIGKILL, group=victim == "group")
        of = "the whole group of" if victim == "group" else "supervisor"
        return f"kill -9 of {of} {supervisor.name} ({supervisor.process.pid})"


class Stopper(Saboteur):
    """Stops a child for a while, and lets it go on."""

    kind = "stop"

    def __init__(self, *given: Any, watch: Watch) -> None:
        super().__init__(*given)
        self._watch = watch

    def pause_seconds(self) -> float:
        return self.random.uniform(0.5, 4.0)

    def act(self) -> str:
        """Stop one, wait, and continue it, whatever has happened meanwhile."""
        children = self._watch.children()
        if not children:
            return ""
        child = self.random.choice(children)
        seconds = self.random.uniform(1.0, self.scale.longest_stop)
        if not child.send(signal.SIGSTOP):
            return ""
        self.stopped.wait(seconds)
        survived = child.send(signal.SIGCONT)
        end = "" if survived else ", which was killed meanwhile"
        return f"SIGSTOP of child {child.pid} for {seconds:.1f} s{end}"


class Restarter(Saboteur):
    """Stops the server and starts it again, a number of times, as an operator and as a crash."""

    kind = "server"

    def __init__(self, *given: Any, server: Server) -> None:
        super().__init__(*given)
        self._server = server
        count = self.scale.restarts
        part = self.scale.trouble_seconds / count
        modes = ["fast", "immediate", *self.random.choices(["fast", "immediate"], k=count)][:count]
        self.random.shuffle(modes)
        self._begun = time.monotonic()
        self._plan = [
            ((n + self.random.uniform(0.2, 0.8)) * part, mode) for n, mode in enumerate(modes)
        ]

    def pause_seconds(self) -> float:
        if not self._plan:
            return threading.TIMEOUT_MAX
        return max(0.0, self._begun + self._plan[0][0] - time.monotonic())

    def act(self) -> str:
        """Restart; also when the run is stopped meanwhile."""
        _, mode = self._plan.pop(0)
        away = self.random.uniform(0.2, self.scale.longest_outage)
        begun = time.monotonic()
        self._server.stop(mode)
        self.stopped.wait(away)
        self._server.start()
        return f"restart of PostgreSQL ({mode}), away for {time.monotonic() - begun:.1f} s"


class Terminator(Saboteur):
    """Ends some of the connections that workers and tasks have."""

    kind = "terminate"
    FIND = """
        SELECT a.pid, a.application_name
        FROM pg_stat_activity a
        WHERE a.backend_type = 'client backend' AND a.datname = current_database()
            AND a.application_name <> %s
        ORDER BY a.pid
    """

    def __init__(self, *given: Any, url: str) -> None:
        super().__init__(*given)
        self._link = Link(url, HARNESS)

    def pause_seconds(self) -> float:
        return self.random.uniform(1.0, 5.0)

    def act(self) -> str:
        found = self._link.execute(self.FIND, [HARNESS])
        chosen = self.random.sample(found, min(len(found), self.random.randint(1, 5)))
        self._link.execute(
            "SELECT pg_terminate_backend(pid) FROM unnest(%s::integer[]) AS pid",
            [[pid for pid, _ in chosen]],
        )
        names = ", ".join(sorted(name or "(no name)" for _, name in chosen))
        return f"pg_terminate_backend of {names}" if chosen else ""


class Tuner(Saboteur):
    """Raises and lowers the slots of queues."""

    kind = "slots"

    def __init__(self, *given: Any, url: str, slots: dict[int, int]) -> None:
        super().__init__(*given)
        self._link = Link(url, HARNESS)
        self.limits = {queue: Limits(number) for queue, number in slots.items()}
        self._slots = dict(slots)

    def pause_seconds(self) -> float:
        return self.random.uniform(0.2, 2.0)

    def act(self) -> str:
        """Change one queue, and note between which moments that came into force."""
        queue = self.random.choice(list(self._slots))
        old, new = self._slots[queue], self.random.randint(1, self.scale.most_slots + 1)
        before = datetime.now(UTC)
        with suppress(psycopg.OperationalError):
            self._link.execute(
                "UPDATE tenantqueue_tenantqueue SET num_slots = %s WHERE id = %s", [new, queue]
            )
        # asked for also when the answer was lost: only the row knows
        ((found,),) = self._link.insist(
            "SELECT num_slots FROM tenantqueue_tenantqueue WHERE id = %s", [queue]
        )
        if found == old:
            return ""
        self._slots[queue] = found
        self.limits[queue].change(found, before=before, after=datetime.now(UTC))
        return f"queue {queue} from {old} to {found} slots"


class Holder(Saboteur):
    """Keeps a transaction open, so that nothing it might see is vacuumed."""

    kind = "snapshot"
    COUNT = "SELECT count(*) FROM tenantqueue_job"

    def __init__(self, *given: Any, url: str) -> None:
        super().__init__(*given)
        self._url = url

    def pause_seconds(self) -> float:
        return self.random.uniform(1.0, 5.0)

    def act(self) -> str:
        """Count the jobs twice, with a long time between."""
        seconds = self.random.uniform(0.4, 1.0) * self.scale.longest_snapshot
        begun = time.monotonic()
        end = ""
        with psycopg.connect(self._url, application_name="chaos holder") as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            first = connection.execute(self.COUNT).fetchone()
            try:
                while not self.stopped.wait(1.0) and time.monotonic() < begun + seconds:
                    connection.execute("SELECT 1")
                second = connection.execute(self.COUNT).fetchone()
            except psycopg.OperationalError:
                second, end = first, ", until the server ended it"
        if first != second:
            raise AssertionError(f"one snapshot held {first} jobs and then {second}")
        return f"a snapshot was held for {time.monotonic() - begun:.1f} s{end}"


def start_all(saboteurs: Iterable[Saboteur]) -> None:
    for saboteur in saboteurs:
        saboteur.start()


def stop_all(saboteurs: Iterable[Saboteur]) -> None:
    """End the trouble: what was stopped goes on, and the server is there."""
    working = list(saboteurs)
    for saboteur in working:
        saboteur.stopped.set()
    for saboteur in working:
        saboteur.join()
