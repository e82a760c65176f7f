"""The pods: started and drained as the autoscaler wants, replaced by deploys, and killed."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import random
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ..results import Incorrect
from . import desk
from .messages import Drain, Kill, Order, Report, Start, Stop, Tell
from .plan import Plan

PATIENCE = 60.0
"""Seconds after which a desk that does not answer counts as dead."""


@dataclass(slots=True)
class Pod:
    """A number of workers on one desk. `ready_at`: when they begin to claim (monotonic time)."""

    id: int
    desk: int
    version: int
    ready_at: float
    is_started: bool = False


class Fleet:
    """All pods, on a few desks."""

    def __init__(self, plan: Plan, chance: random.Random) -> None:
        self.version = 0
        self._plan = plan
        self._chance = chance
        self._numbers = itertools.count(1)
        self._pods: dict[int, Pod] = {}
        self._deploy: Iterator[None] | None = None
        self._surplus = 0
        """Pods that start beside those that they replace."""
        self._restarts: deque[tuple[float, Pod]] = deque()
        """When a killed worker is started again, and its pod."""
        context = multiprocessing.get_context("spawn")
        self._desks = []
        for number in range(plan.desks):
            mine, its = context.Pipe()
            args = (f"desk-{number}", its, plan.async_slots)
            process = context.Process(target=desk.run, args=args, daemon=True)
            process.start()
            its.close()
            self._desks.append((process, mine))

    # the size

    @property
    def pods(self) -> int:
        """The number of pods that are there or start, without those that drain."""
        return len(self._pods)

    def scale(self, pods: int) -> None:
        """Start or drain pods: those of the old version first, then the newest."""
        while len(self._pods) < pods:
            self._add(self.version)
        superfluous = sorted(self._pods.values(), key=lambda pod: (pod.version, -pod.id))
        for pod in superfluous[: max(0, len(superfluous) - pods - self._surplus)]:
            self._drain(pod)

    def _add(self, version: int) -> Pod:
        number = next(self._numbers)
        ready_at = time.monotonic() + self._plan.start_seconds
        pod = self._pods[number] = Pod(number, number % len(self._desks), version, ready_at)
        return pod

    def _drain(self, pod: Pod) -> None:
        del self._pods[pod.id]
        if pod.is_started:
            self._send(pod, Drain(pod.id))

    # what happens to it

    def deploy(self) -> None:
        """Begin to replace all pods by those of the next version, some at a time."""
        self.version += 1
        self._deploy = self._waves()

    @property
    def is_deploying(self) -> bool:
        """Whether pods of two versions are there."""
        return self._deploy is not None

    def _waves(self) -> Iterator[None]:
        while old := [pod for pod in self._pods.values() if pod.version != self.version]:
            size = max(1, math.ceil(self._plan.surge * len(self._pods)))
            new = [self._add(self.version) for _ in old[:size]]
            self._surplus = len(new)
            while not all(pod.is_started or pod.id not in self._pods for pod in new):
                yield
            for pod in old[: len(new)]:
                if pod.id in self._pods:
                    self._drain(pod)
            self._surplus = 0
            # as long as the probes of a new pod take
            until = time.monotonic() + 2 * self._plan.start_seconds
            while time.monotonic() < until:
                yield

    def kill_worker(self) -> None:
        """Kill a worker of some pod; its container is started again."""
        if started := [pod for pod in self._pods.values() if pod.is_started]:
            pod = self._chance.choice(started)
            self._send(pod, Kill(pod.id, 1))
            self._restarts.append((time.monotonic() + self._plan.start_seconds, pod))

    def kill_pod(self) -> None:
        """Kill all workers of some pod; another pod takes its place."""
        if started := [pod for pod in self._pods.values() if pod.is_started]:
            pod = self._chance.choice(started)
            del self._pods[pod.id]
            self._send(pod, Kill(pod.id))
            self._add(pod.version)

    def turn(self) -> None:
        """Start what is due, and continue a deploy."""
        now = time.monotonic()
        for pod in self._pods.values():
            if not pod.is_started and pod.ready_at <= now:
                pod.is_started = True
                self._send(pod, Start(pod.id, self._plan.pod_workers, pod.version))
        while self._restarts and self._restarts[0][0] <= now:
            _, pod = self._restarts.popleft()
            if pod.id in self._pods:
                self._send(pod, Start(pod.id, 1, pod.version))
        if self._deploy is not None and next(self._deploy, self) is self:
            self._deploy = None

    # desks

    def _send(self, pod: Pod, order: Order) -> None:
        self._desks[pod.desk][1].send(order)

    def ask(self) -> list[Report]:
        """Return what each desk did since the last time."""
        for _, orders in self._desks:
            orders.send(Tell())
        return self._answers()

    def stop(self) -> list[Report]:
        """Let all workers sign off, and return the last reports."""
        for _, orders in self._desks:
            orders.send(Stop())
        reports = self._answers()
        for process, _ in self._desks:
            process.join(PATIENCE)
        return reports

    def kill(self) -> None:
        """End the desks at once."""
        for process, _ in self._desks:
            process.kill()

    def _answers(self) -> list[Report]:
        reports: list[Report] = []
        for process, orders in self._desks:
            if not orders.poll(PATIENCE):
                raise Incorrect(f"{process.name} does not answer")
            report = orders.recv()
            if report.error:
                raise Incorrect(f"a desk failed:\n{report.error}")
            reports.append(report)
        return reports
