"""A process with a share of the workers, one connection for their claims and one for their leases.

It gives each worker its turn when it is due. A real worker waits in a thread of its own.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
import traceback
from multiprocessing.connection import Connection

import django

from .messages import Drain, Kill, Order, Report, Start, Stop

django.setup()

from django_tenantqueue.queries.workers import NewWorker  # noqa: E402
from django_tenantqueue.worker.connection import connect  # noqa: E402
from django_tenantqueue.worker.supervisor.lease import Lease  # noqa: E402

from .virtual import NEVER, THREADS, VirtualWorker, use_virtual_tasks  # noqa: E402

BUSY_SECONDS = 0.1
"""How long a desk gives turns before it looks at its orders again."""


def run(name: str, orders: Connection, async_slots: int) -> None:
    """Do what the orders say, until the last one."""
    try:
        Desk(name, orders, async_slots).run()
    except BaseException:
        orders.send(Report(error=traceback.format_exc()))
        raise


class Desk:
    """The workers of one process."""

    def __init__(self, name: str, orders: Connection, async_slots: int) -> None:
        use_virtual_tasks()
        self._name = name
        self._orders = orders
        self._async_slots = async_slots
        self._connection = connect("default", name)
        self._connection.add_notify_handler(lambda notice: self._notified(notice.channel))
        self._lease = Lease("default", name)
        self._workers: dict[int, VirtualWorker] = {}
        self._pods: dict[int, list[VirtualWorker]] = {}
        self._due: list[tuple[float, int, VirtualWorker]] = []
        self._numbers = itertools.count()
        self._report = Report()

    def run(self) -> None:
        """Give turns and take orders."""
        while True:
            self._lease.check()
            soonest = self._due[0][0] if self._due else NEVER
            pause = max(0.0, min(soonest - time.monotonic(), 0.5))
            watched = [self._orders.fileno(), self._connection.fileno()]
            readable, _, _ = select.select(watched, [], [], pause)
            if self._connection.fileno() in readable:
                self._hear()
            while self._orders.poll():
                order = self._orders.recv()
                if isinstance(order, Stop):
                    self._stop()
                    return
                self._obey(order)
            self._turns()

    def _turns(self) -> None:
        """Give each worker its turn that is due, but look at the orders in between."""
        now = time.monotonic()
        until = now + BUSY_SECONDS
        while self._due and self._due[0][0] <= now < until:
            at, _, worker = heapq.heappop(self._due)
            if worker.id not in self._workers or at != worker.due_at:
                continue
            self._report.late_seconds = max(self._report.late_seconds, now - at)
            self._report.turns += 1
            due = worker.turn()
            self._collect(worker)
            if due is None:
                self._forget(worker)
            else:
                self._plan(worker, due)
            self._read_notifications()
            now = time.monotonic()

    def _plan(self, worker: VirtualWorker, at: float) -> None:
        worker.due_at = at
        heapq.heappush(self._due, (at, next(self._numbers), worker))

    # notifications

    def _hear(self) -> None:
        self._connection.pgconn.consume_input()
        self._read_notifications()

    def _read_notifications(self) -> None:
        while notice := self._connection.pgconn.notifies():
            self._notified(notice.relname.decode())

    def _notified(self, channel: str) -> None:
        worker = self._workers.get(int(channel.rpartition("_")[2]))
        if worker is not None:
            worker.loop.notified()
            self._plan(worker, time.monotonic())

    # orders

    def _obey(self, order: Order) -> None:
        if isinstance(order, Start):
            pod = self._pods.setdefault(order.pod, [])
            for _ in range(order.workers):
                name = f"pod-{order.pod}.{next(self._numbers)}"
                pod.append(self._start(name, order.version))
        elif isinstance(order, Drain):
            for worker in self._pods.get(order.pod, ()):
                worker.loop.claimed_jobs.draining = True
                if worker.id in self._workers:
                    self._plan(worker, time.monotonic())
        elif isinstance(order, Kill):
            for worker in self._pods.get(order.pod, [])[: order.workers]:
                self._kill(worker)
        else:
            self._tell()

    def _start(self, name: str, version: int) -> VirtualWorker:
        described = NewWorker(
            name=name,
            host=self._name,
            pid=os.getpid(),
            supervisor_pid=os.getpid(),
            version=str(version),
            threads=THREADS,
            async_slots=self._async_slots,
        )
        worker_id = self._lease.register(described)
        worker = VirtualWorker(described, worker_id, version, self._connection)
        self._workers[worker.id] = worker
        self._plan(worker, time.monotonic())
        return worker

    def _kill(self, worker: VirtualWorker) -> None:
        """Let it do nothing more, and free its lease, as the server does when a machine is gone."""
        if worker.id in self._workers:
            self._report.orphaned += worker.die()
            self._collect(worker)
            self._forget(worker)

    def _forget(self, worker: VirtualWorker) -> None:
        del self._workers[worker.id]
        for workers in self._pods.values():
            if worker in workers:
                workers.remove(worker)
        self._lease.end(worker.id)

    def _collect(self, worker: VirtualWorker) -> None:
        report = self._report
        report.trips += worker.loop.trips
        report.waits += worker.places.waits
        report.runs += worker.places.runs
        for taken in (worker.loop.trips, worker.places.waits, worker.places.runs):
            taken.clear()

    def _tell(self) -> None:
        report, self._report = self._report, Report()
        report.workers = len(self._workers)
        report.running = sum(len(w.loop.claimed_jobs.running()) for w in self._workers.values())
        report.cpu_seconds = time.process_time()
        self._orders.send(report)

    def _stop(self) -> None:
        for worker in list(self._workers.values()):
            worker.loop.claimed_jobs.draining = True
            worker.loop.abandon()
            worker.loop.close()
            self._collect(worker)
            self._forget(worker)
        self._lease.close()
        self._connection.close()
        self._tell()
