"""One run from the first migration to the audit. Django must be set up before this is imported."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from django.core.management import call_command
from django.db import connection

from django_tenantqueue.models import TenantQueue, Worker

from .audit import audit
from .collect import SLOTS, are_signed_on, collect, count_unfinished
from .evidence import Evidence
from .finding import Finding
from .fleet import Fleet
from .link import Link
from .load import Load
from .log import Log
from .plan import Scale, plan_slots, plan_waves
from .server import Server
from .tables import SCHEMA
from .trouble import (
    HARNESS,
    Holder,
    Killer,
    Restarter,
    Saboteur,
    Stopper,
    Terminator,
    Tuner,
    start_all,
    stop_all,
)
from .watch import Watch

START_SECONDS = 120.0
LOOK_SECONDS = 0.5


class ChaosRun:
    """What belongs to one run."""

    def __init__(self, scale: Scale, seed: int, server: Server, directory: Path) -> None:
        self.scale = scale
        self.seed = seed
        self.server = server
        self.directory = directory
        self.log = Log()
        self.link = Link(server.url, HARNESS)
        self.fleet = Fleet(scale, directory, self.log)
        self.watch = Watch(self.fleet.pids)
        self.load = Load(plan_waves(scale, seed), 0.9 * scale.trouble_seconds)
        self.saboteurs: list[Saboteur] = []
        self.tuner: Tuner

    def perform(self) -> tuple[Evidence, list[Finding]]:
        self._prepare()
        try:
            self._start_fleet()
            self._make_trouble()
            self._drain()
            # before the fleet is told to end: who is alive now has not died of any trouble
            self.watch.stop()
            exit_codes = self.fleet.stop()
        finally:
            # first: a server that is started again would outlive the run
            stop_all(saboteur for saboteur in self.saboteurs if saboteur.is_alive())
            self.fleet.destroy()
        failures = [
            f"{thread.name}: {thread.failure!r}"
            for thread in (self.load, *self.saboteurs)
            if thread.failure is not None
        ]
        if self.load.left_out:
            failures.append(f"{self.load.left_out} portions were not enqueued in time")
        evidence = collect(
            self.link,
            lives=self.watch.lives(),
            limits=self.tuner.limits,
            exit_codes=exit_codes,
            failures=failures,
        )
        return evidence, audit(evidence)

    def _prepare(self) -> None:
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(SCHEMA)
        TenantQueue.objects.bulk_create(
            TenantQueue(tenant=tenant, name="default", num_slots=slots)
            for tenant, slots in plan_slots(self.scale, self.seed).items()
        )
        connection.close()

    def _start_fleet(self) -> None:
        self.fleet.start()
        self.watch.start()
        wanted = self.scale.supervisors * self.scale.processes
        end = time.monotonic() + START_SECONDS
        while Worker.objects.count() < wanted or len(self.watch.children()) < wanted:
            if time.monotonic() > end:
                raise TimeoutError(f"{wanted} workers have not signed on in {START_SECONDS} s")
            time.sleep(0.05)
        connection.close()
        self.log.note("fleet", f"{wanted} worker processes are there")

    def _make_trouble(self) -> None:
        given = (self.seed, self.log, self.scale)
        url = self.server.url
        self.tuner = Tuner(*given, url=url, slots=dict(self.link.execute(SLOTS)))
        self.saboteurs = [
            Killer(*given, fleet=self.fleet, watch=self.watch),
            Stopper(*given, watch=self.watch),
            Restarter(*given, server=self.server),
            Terminator(*given, url=url),
            Holder(*given, url=url),
            self.tuner,
        ]
        end = time.monotonic() + self.scale.trouble_seconds
        self.load.start()
        start_all(self.saboteurs)
        while time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
            if not self.load.is_alive() and not count_unfinished(self.link, poison=False):
                break
        stop_all(self.saboteurs)
        self.log.note("trouble", "has ended")
        self.load.stop(self.scale.drain_seconds)

    def _drain(self) -> None:
        """Wait until all jobs have ended, the last who were killed are off the list, and those who
        were started in their place have signed on.
        """
        end = time.monotonic() + self.scale.drain_seconds
        while time.monotonic() < end:
            time.sleep(LOOK_SECONDS)  # who was killed a moment ago has ended by then
            left = count_unfinished(self.link, poison=True)
            if not left and are_signed_on(self.link, self.fleet.living(), self.scale.supervisors):
                break
        self.log.note("drain", f"{left} jobs are left")

    def keep(self, evidence: Evidence) -> None:
        """Write the evidence beside the workers' logs, for a diagnosis."""
        for name in ("rows", "runs"):
            lines = (json.dumps(asdict(one), default=str) for one in getattr(evidence, name))
            (self.directory / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        lives = {name: asdict(life) for name, life in evidence.lives.items()}
        (self.directory / "lives.json").write_text(json.dumps(lives, default=str, indent=1))
        entries = (f"{e.at:%H:%M:%S.%f} {e.kind}: {e.text}\n" for e in self.log.entries)
        (self.directory / "trouble.log").write_text("".join(entries))
