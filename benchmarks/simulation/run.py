"""One run: the day, the night after it, and the checks."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from math import ceil
from statistics import fmean
from typing import Any

import psycopg
from django.db import connections

from django_tenantqueue.contrib.prometheus.reads import Metrics, read_metrics
from django_tenantqueue.worker.supervisor.lease import Lease
from django_tenantqueue.worker.supervisor.maintenance import Maintenance

from ..measure import percentile
from ..results import Incorrect
from ..server import Server
from .checks import check_curves, check_jobs, check_runs, check_slots
from .fleet import Fleet
from .load import Load, Tenants, make_tenants
from .messages import Report, Run
from .plan import Plan
from .series import Series

TURN_SECONDS = 0.1
STALL_SECONDS = 120.0
"""Seconds after the day in which the backlog must be worked off and the fleet must shrink."""
LIMITED_SECONDS = 0.3
"""Duration of a job that waits for the only slot of its tenant."""


class Simulation:
    """A day of a fleet."""

    def __init__(self, plan: Plan, server: Server, db: psycopg.Connection[Any]) -> None:
        self.series = Series(plan=asdict(plan))
        self.plan = plan
        self._server = server
        self._db = db
        self._chance = random.Random(plan.seed)
        self._began = 0.0
        self._runs: list[Run] = []
        self._waits: list[float] = []
        self._orphaned: set[int] = set()
        self._wanted: list[tuple[float, int]] = []
        self._counted = (0.0, 0, 0.0, 0.0)
        self._desks_cpu = 0.0
        self._turn_at = self._ask_at = 0.0
        self._ended = threading.Event()

    # the run

    def run(self) -> Series:
        """Let the day pass, and check it. Raises Incorrect."""
        plan = self.plan
        began = time.monotonic()
        tenants = make_tenants(plan, self._chance)
        self.load = Load(plan, tenants)
        for tenant in tenants.blocked:
            self.load.put(tenant, [1.0] * plan.backlog)
        blocked = set(self.load.ids)
        self.series.facts["backlog"] = len(blocked)
        self._db.execute("VACUUM (ANALYZE)")
        self._server.checkpoint()
        say(f"{plan.tenants:,} tenants were made in {time.monotonic() - began:.0f} s")
        maintenance = threading.Thread(target=self._maintain, name="maintenance")
        self.fleet = Fleet(plan, self._chance)
        try:
            maintenance.start()
            self._pass_day(tenants)
            reports = self.fleet.stop()
        finally:
            self._ended.set()
            maintenance.join()
            self.fleet.kill()
        for report in reports:
            self._take(report)
        self._check(blocked)
        return self.series

    def _pass_day(self, tenants: Tenants) -> None:
        plan = self.plan
        self.fleet.scale(plan.least_pods)
        self._turn_until(time.monotonic() + plan.start_seconds + 1.0)
        self._began = time.monotonic()
        self.load.begin()
        events = sorted(self._events(), key=lambda event: event[0])
        for second, kind, happen in events:
            self._turn_until(self._began + second)
            self._note(kind)
            happen()
        self._turn_until(self._began + plan.day_seconds)
        self.load.join()
        self._note("evening")
        self._turn_while(lambda: bool(self._startable()) or self.fleet.pods > plan.least_pods)
        self._note("limited")
        for tenant in tenants.limited:
            self.load.put(tenant, [plan.limited_seconds])
        self._turn_until(time.monotonic() + 2.0)
        for tenant in tenants.limited:
            self.load.put(tenant, [LIMITED_SECONDS] * plan.limited_jobs)
        self._turn_until(time.monotonic() + plan.limited_seconds)
        self._turn_while(lambda: bool(self._startable()))
        self._note("end")

    def _events(self) -> list[tuple[float, str, Callable[[], None]]]:
        plan = self.plan
        burst = [plan.burst_seconds] * plan.burst
        limited = [plan.burst_seconds] * plan.limited_burst
        found: list[tuple[float, str, Callable[[], None]]] = [
            (plan.second(plan.DEPLOY_HOURS[0]), "deploy", self.fleet.deploy),
            (plan.second(plan.DEPLOY_HOURS[1]), "deploy", self._deploy_news),
            (plan.second(plan.POD_DEATH_HOUR), "pod", self.fleet.kill_pod),
            (plan.second(plan.BURST_HOUR), "burst", lambda: self.load.put("burst", burst)),
            (
                plan.second(plan.LIMITED_BURST_HOUR),
                "limited-burst",
                lambda: self.load.put("limited-burst", limited),
            ),
        ]
        for _ in range(plan.kills):
            second = self._chance.uniform(0.1, 0.95) * plan.day_seconds
            found.append((second, "kill", self.fleet.kill_worker))
        return found

    def _deploy_news(self) -> None:
        self.fleet.deploy()
        self.load.knows_news = True

    def _startable(self) -> int:
        """Return how many jobs are neither ended nor blocked."""
        row = self._db.execute(
            "SELECT count(*) FROM tenantqueue_job_hot j JOIN tenantqueue_tenantqueue q "
            "ON q.id = j.queue_id WHERE NOT q.paused AND q.num_slots IS DISTINCT FROM 0"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def _note(self, kind: str) -> None:
        self.series.events.append((round(time.monotonic() - self._began, 1), kind))
        if kind != "kill":
            say(f"{self.series.events[-1][0]:6.1f} s: {kind}")

    # turns

    def _turn_until(self, at: float) -> None:
        while (now := time.monotonic()) < at:
            self._turn(now)
            time.sleep(max(0.0, min(TURN_SECONDS, at - time.monotonic())))

    def _turn_while(self, goes_on: Callable[[], bool]) -> None:
        end = time.monotonic() + STALL_SECONDS
        while goes_on():
            if time.monotonic() > end:
                raise Incorrect(
                    f"after {STALL_SECONDS:.0f} s {self._startable()} jobs are left, "
                    f"and {self.fleet.pods} pods"
                )
            self._turn_until(time.monotonic() + 0.5)

    def _turn(self, now: float) -> None:
        if self.load.error is not None:
            raise self.load.error
        was_deploying = self.fleet.is_deploying
        self.fleet.turn()
        if was_deploying and not self.fleet.is_deploying:
            self._note("deployed")
        if self._ask_at <= now:
            self._ask_at = now + self.plan.ask_seconds
            self._scale_and_record(now)

    def _scale_and_record(self, now: float) -> None:
        plan = self.plan
        asked = time.monotonic()
        metrics = read_metrics("default")
        scrape = time.monotonic() - asked
        wanted = ceil(metrics.wanted_workers / plan.pod_workers)
        pods = min(plan.most_pods, max(plan.least_pods, wanted))
        self._wanted = [(at, n) for at, n in self._wanted if at > now - plan.shrink_seconds]
        self._wanted.append((now, pods))
        self.fleet.scale(max(n for _, n in self._wanted))
        reports = self.fleet.ask()
        if self._began:
            self._record(now, metrics, scrape, reports)

    def _record(self, now: float, metrics: Metrics, scrape: float, reports: list[Report]) -> None:
        for report in reports:
            self._take(report)
        trips = [trip for report in reports for trip in report.trips]
        waits = [wait for report in reports for wait in report.waits]
        spent = [trip.seconds * 1000 for trip in trips] or [0.0]
        desks = sum(report.cpu_seconds for report in reports)
        last = self._counted
        own = time.process_time()
        server = self._server.cpu_seconds() or 0.0
        self._counted = (now, len(self.load.ids), server, desks + own)
        seconds = max(0.001, now - last[0])
        is_first = not last[0]

        def rate(total: float, before: float) -> float:
            return 0.0 if is_first else (total - before) / seconds

        point = {
            "second": now - self._began,
            "waiting": metrics.counts.ready,
            "blocked": sum(q.jobs for queues in metrics.blocked.values() for q in queues),
            "running": sum(report.running for report in reports),
            "wanted": metrics.wanted_workers,
            "workers": sum(report.workers for report in reports),
            "pods": self.fleet.pods,
            "oldest_startable": metrics.need.oldest_wait_seconds or 0.0,
            "small_p95": percentile(waits, 95) if waits else 0.0,
            "enqueued": rate(len(self.load.ids), last[1]),
            "claimed": sum(trip.jobs for trip in trips) / seconds if not is_first else 0.0,
            "claims": len(trips) / seconds if not is_first else 0.0,
            "empty_claims": sum(not t.jobs for t in trips) / seconds if not is_first else 0.0,
            "claim_p50_ms": percentile(spent, 50),
            "claim_p95_ms": percentile(spent, 95),
            "server_cores": rate(server, last[2]),
            "python_cores": rate(desks + own, last[3]),
            "scrape_ms": scrape * 1000,
            "late": max(report.late_seconds for report in reports),
        }
        self.series.points.append([round(value, 2) for value in point.values()])
        self._waits += waits
        if len(self.series.points) % 8 == 0:
            say(" ".join(f"{name}={value:.5g}" for name, value in point.items()))

    def _take(self, report: Report) -> None:
        self._runs += report.runs
        self._orphaned.update(report.orphaned)

    def _maintain(self) -> None:
        lease = Lease("default", "maintenance")
        maintenance = Maintenance(lease)
        while not self._ended.is_set():
            lease.check()
            self._ended.wait(min(0.5, max(0.01, maintenance.run_once())))
        maintenance.resign()
        maintenance.close()
        lease.close()
        connections.close_all()

    # the end

    def _check(self, blocked: set[int]) -> None:
        facts = self.series.facts
        facts |= check_jobs(self._db, self.load.ids, blocked, self._orphaned)
        check_runs(self._runs, facts["ended"])
        facts |= check_slots(self._db, self._runs)
        check_curves(self.series)
        (small,) = self._db.execute(
            "SELECT max(extract(epoch FROM queued_at - greatest(run_at, created_at))) "
            "FROM tenantqueue_job_history WHERE attempt = 1 AND args @> '{\"args\": [true]}'"
        ).fetchone() or (0,)
        facts |= {
            "orphaned": len(self._orphaned),
            "small_max": round(float(small or 0), 1),
            "small_p95": round(percentile(self._waits or [0.0], 95), 2),
            "small_p50": round(percentile(self._waits or [0.0], 50), 3),
            "most_workers": max(self.series.column("workers")),
            "most_running": max(self.series.column("running")),
            "mean_claim_ms": round(fmean(self.series.column("claim_p50_ms")), 2),
            "server": self._server.version(),
            "cores": os.cpu_count(),
        }


def say(text: str) -> None:
    """Print progress."""
    print(text, file=sys.stderr, flush=True)
