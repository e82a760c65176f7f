"""Simulate a large fleet: ``python -m benchmarks.simulation``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from example_project.postgres import PostgresError, database

from ..results import Incorrect
from ..server import APPLICATION, EMBEDDED_SETTINGS, Server
from .plan import SIZES, Plan


def _parse(arguments: Sequence[str] | None) -> tuple[Plan, Path | None]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulation",
        description="Let virtual workers claim with the real statements on a real PostgreSQL: the "
        "one that DATABASE_URL names, else an embedded one. Exits with 1 when a check fails.",
    )
    add = parser.add_argument
    add("--size", choices=SIZES, default="full", help="full (default): some 9 minutes")
    add(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a size, see plan.py: --set peak_rate=60",
    )
    add("--json", type=Path, metavar="FILE", help="write the curves to FILE")
    options = parser.parse_args(arguments)
    plan = SIZES[options.size]
    for change in options.set:
        name, _, value = change.partition("=")
        if not hasattr(plan, name):
            parser.error(f"--set {change}: there is no {name!r} in plan.py")
        plan = replace(plan, **{name: type(getattr(plan, name))(value)})
    return plan, options.json


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a simulation; return the exit code."""
    plan, path = _parse(arguments)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        with database(EMBEDDED_SETTINGS) as url:
            return _simulate(plan, path, url)
    except PostgresError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _simulate(plan: Plan, path: Path | None, url: str) -> int:
    server = Server(url)
    try:
        os.environ["DATABASE_URL"] = server.create_database("simulation")
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        os.environ["BENCHMARK_APPLICATION"] = APPLICATION
        import django

        django.setup()
        import psycopg
        from django.core.management import call_command
        from django.db import connections

        from .run import Simulation

        call_command("migrate", verbosity=0)
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
            simulation = Simulation(plan, server, db)
            try:
                simulation.run()
            except Incorrect as error:
                print(f"WRONG: {error}")
                return 1
            finally:
                connections.close_all()
                if path is not None:
                    simulation.series.write(path)
        for name, value in simulation.series.facts.items():
            print(f"{name}: {value}")
        return 0
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
