"""The supervisor: starts the children, replaces those that die, hands on signals.

A child that is asked to stop ends its jobs itself (child/process.py). Here only late children are
killed. No user code runs here. Between checks of its children it does the maintenance, if it is the
leader.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType

import psycopg
from django.db import DatabaseError, connections

from ...features import Service
from ...models.worker import SILENT
from ...operations.rescue import DeathReport, rescue_worker
from ...queries.workers import Orders
from ...text import number_of
from ..child.process import DRAIN, STOP_AT_ONCE, STOP_SIGNALS
from ..config import KILL_SECONDS, WorkerConfig
from ..connection import PROBE_SECONDS
from ..waiting import pipe, wait_readable
from .child import Child
from .children import Children
from .health_port import HealthPort
from .heartbeat_file import HeartbeatFile
from .kill_limits import ProcessLimits
from .lease import Lease
from .lease_watch import LeaseWatch
from .maintenance import Maintenance
from .systemd import SystemdNotifier

logger = logging.getLogger("django_tenantqueue")


class Supervisor:
    """Keeps `config.processes` children alive until it is stopped."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        say: Callable[[str], None],
        services: Sequence[Service] = (),
        health_port: HealthPort | None = None,
    ) -> None:
        self.config = config
        self._say = say
        self._health_port = health_port
        self._services = services if health_port is None else (health_port, *services)
        self._lease = Lease(config.database, config.name)
        self._systemd = SystemdNotifier()
        self._maintenance = (
            Maintenance(self._lease, config.name, progress=self._keep_alive)
            if config.maintenance
            else None
        )
        self._process_limits = ProcessLimits(config.kill_rss)
        self._heartbeat_file = HeartbeatFile(config.heartbeat_file)
        self._children = Children(config, self._lease, say=say, in_child=self._close_inherited)
        self._lease_watch = LeaseWatch(
            self._lease, self._kill_unleased, connections[config.database]
        )
        self._dead: list[tuple[Child, DeathReport]] = []
        self._stops = 0
        self._stop_at = 0.0
        self._report_at = 0.0
        self._maintain_at = 0.0
        self._lease_spoke = False
        self._wake_read, self._wake_write = pipe()

    def run(self) -> int:
        """Supervise until all children have ended; return the exit code."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._children.start_due()
        self._lease_watch.start()
        for service in self._services:
            service.start()
        while not self._children.are_gone:
            self._obey(self._lease.check(at_once=self._lease_spoke))
            self._kill_condemned()
            self._dead += self._children.reap()
            self._children.plan_successors()
            if self._lease.is_held:  # else each would try to connect before the next kill
                self._rescue_dead()
                self._children.start_due()
            self._kill_late()
            if self._stops:
                self._report_stop()
            self._tell_health()
            self._rest()
        self._systemd.tell("it is stopping", is_stopping=True)
        self._rescue_last()
        self._lease_watch.close()
        self._heartbeat_file.remove()
        for service in self._services:
            service.close()
        if self._maintenance is not None:
            self._maintenance.close()
        connections.close_all()
        self._lease.close()
        if self._children.refused is not None:
            logger.error("starting a child failed: %s", self._children.refused)
            return 1
        return 0

    def _rest(self) -> None:
        """Do the maintenance and sleep until something is due, unless the last child has ended."""
        if self._children.are_gone:
            return
        self._sleep(
            min(
                self._maintain(),
                self._children.seconds_to_next_start() if self._lease.is_held else 1.0,
                self._lease.seconds_to_check,
                self._process_limits.seconds_to_next(self._children),
                self._systemd.seconds_to_next,
            )
        )

    def _maintain(self) -> float:
        """Do the fleet's maintenance if it is due; return the seconds until something is due."""
        if self._maintenance is None:
            return PROBE_SECONDS
        if self._stops:
            self._maintenance.resign()
            return PROBE_SECONDS
        if not self._lease.is_held:
            return PROBE_SECONDS
        now = time.monotonic()
        if self._maintain_at <= now:
            self._maintain_at = now + self._maintenance.run_once()
        return min(PROBE_SECONDS, self._maintain_at - now)

    def _tell_health(self) -> None:
        reason = self._why_not_ready()
        self._heartbeat_file.write(list(self._children), reason)
        self._systemd.tell(reason, is_stopping=self._stops > 0)
        if self._health_port is not None:
            self._health_port.tell(reason)

    def _keep_alive(self) -> None:
        self._systemd.keep_alive()
        if self._health_port is not None:
            self._health_port.keep_alive()

    def _why_not_ready(self) -> str | None:
        if self._stops:
            return "it is stopping"
        if not self._lease.is_held:
            return "it has no connection to the database"
        return self._children.why_not_ready()

    def _close_inherited(self) -> None:
        os.close(self._wake_read)
        os.close(self._wake_write)
        for service in self._services:
            service.close_in_child()

    def _sleep(self, seconds: float) -> None:
        lease = self._lease.fileno()
        wait_for = [self._wake_read] if lease is None else [self._wake_read, lease]
        readable = wait_readable(wait_for, seconds)
        self._lease_spoke = lease in readable
        try:
            while os.read(self._wake_read, 512):
                pass
        except BlockingIOError:
            pass

    def _rescue_dead(self) -> None:
        """Take back the jobs of dead children. Jobs that had not begun lose no attempt."""
        dead, self._dead = self._dead, []
        for child, death in dead:
            try:
                rescued = rescue_worker(self.config.database, child.worker_id, death)
                if rescued.complete:
                    self._lease.end(child.worker_id)
                    continue
            except (psycopg.Error, DatabaseError) as error:
                logger.warning(
                    "rescuing the jobs of dead child %d failed, retrying: %s", child.pid, error
                )
                connections[self.config.database].close()
            self._dead.append((child, death))

    def _rescue_last(self) -> None:
        """Take back the jobs of the last children for 3 s. Other workers rescue the rest."""
        end = time.monotonic() + 3.0
        self._rescue_dead()
        while self._dead and time.monotonic() < end:
            time.sleep(0.1)
            self._rescue_dead()

    def _obey(self, orders: list[Orders]) -> None:
        wanted = {order.worker_id: order for order in orders}
        for child in self._children:
            order = wanted.get(child.worker_id)
            if order is None:
                continue
            if order.stop and child.told_to_stop_at is None:
                child.told_to_stop_at = time.monotonic()
                self._say(f"child {child.pid} stops: an operator asked for it")
                self._children.send(signal.SIGTERM, child)
            elif order.drain and not child.told_to_drain and child.told_to_stop_at is None:
                child.told_to_drain = True
                self._say(f"child {child.pid} drains: an operator asked for it")
                self._children.send(DRAIN, child)

    def _kill_condemned(self) -> None:
        for child in self._process_limits.condemn(self._children):
            assert child.sentence is not None
            logger.error("child %d is killed: %s", child.pid, child.sentence.reason)
            self._children.send(signal.SIGKILL, child)

    def _kill_unleased(self) -> None:
        """Kill children whose jobs may soon be rescued; called in the lease's thread."""
        unleased = [child for child in self._children if self._is_unleased(child)]
        if new := [child for child in unleased if not child.is_unleased]:
            for child in new:
                child.is_unleased = True
            logger.error(
                "the database has not confirmed the locks or heartbeats of the children for %.1f s"
                ": killing %d of them before other workers run their jobs",
                max(self._unconfirmed_seconds(child) for child in new),
                len(new),
            )
        for child in unleased:
            self._children.send(signal.SIGKILL, child)

    def _is_unleased(self, child: Child) -> bool:
        if self._lease.uses_locks:
            return self._lease.is_overdue
        return self._unconfirmed_seconds(child) > SILENT.total_seconds()

    def _unconfirmed_seconds(self, child: Child) -> float:
        if self._lease.uses_locks:
            return self._lease.unproved_seconds
        return child.shared_memory.silent_seconds

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._stops += 1
        self._children.stopping = True
        self._stop_at = time.monotonic()
        name = signal.Signals(number).name
        if self._stops == 1:
            self._say(
                f"{name}: no new jobs; running ones have {self.config.shutdown_timeout:.0f} s to "
                "end (once more: stop at once)"
            )
        self._children.send(signal.SIGTERM if self._stops == 1 else STOP_AT_ONCE)

    def _report_stop(self) -> None:
        now = time.monotonic()
        if self._report_at == 0.0:
            self._report_at = now + 1.0
        if now < self._report_at:
            return
        self._report_at = now + KILL_SECONDS
        begun = sorted(
            (begun_job for child in self._children for begun_job in child.shared_memory.begun()),
            key=lambda begun_job: begun_job.begun_at,
        )
        if not begun:
            return
        named = ", ".join(f"{m.job_id} ({now - m.begun_at:.0f} s)" for m in begun[:5])
        more = f" and {len(begun) - 5} more" if len(begun) > 5 else ""
        left = max(0.0, self._stop_at + self.config.shutdown_timeout - now)
        jobs = number_of("job", len(begun))
        self._say(f"waiting up to {left:.0f} s for {jobs}: {named}{more}")

    def _kill_late(self) -> None:
        """Kill the children that do not stop in time, without counting it against a job."""
        now = time.monotonic()
        allowed = KILL_SECONDS + (self.config.shutdown_timeout if self._stops < 2 else 0.0)
        for child in self._children:
            asked_at = self._stop_at if self._stops else child.told_to_stop_at
            if asked_at is not None and now - asked_at > allowed:
                child.killed_at_stop = True
                self._children.send(signal.SIGKILL, child)
