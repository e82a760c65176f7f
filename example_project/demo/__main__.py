"""Run the example project: ``python -m example_project.demo``, or ``make demo``.

Brings up the database, the data, the site, a worker and a load, and prints what to open.
"""

import argparse
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from example_project.flights.source import DataMissingError
from example_project.postgres import DEFAULT_DATA_DIR, PostgresError

from . import preparing
from .keeper import running_server
from .once import run_once, start_worker
from .preparing import HOST, timed
from .processes import MANAGE, ProcessEnded, Processes

LOADS = ("none", "light", "normal", "heavy")
DEFAULT_JOBS = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return its exit code."""
    options = parse(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with ExitStack() as stack:
            print("django_tenantqueue, example project\n")
            _connect(stack, options.data_dir)
            return _run(options)
    except KeyboardInterrupt:
        print("\nStopped.")
        return 130 if options.once else 0
    except _expected_errors() as error:
        print(f"\nerror: {str(error).strip()}", file=sys.stderr)
        return 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m example_project.demo", description=__doc__)
    add = parser.add_argument
    add("--once", action="store_true", help="run a fixed batch of reports, check it, and end")
    add(
        "--jobs",
        type=_at_least_one,
        default=DEFAULT_JOBS,
        metavar="N",
        help=f"reports in the batch of --once (default {DEFAULT_JOBS})",
    )
    add(
        "--port",
        type=int,
        metavar="N",
        help="port of the site (default: the first free one from 8000; 0: any)",
    )
    add("--load", choices=LOADS, default="normal", help="rate of requests (default: normal)")
    add(
        "--troubles",
        action="store_true",
        help="start with failures, stuck queues and other problems to fix in the admin",
    )
    add(
        "--processes",
        type=_at_least_one,
        metavar="N",
        help="worker processes (default 2; with --once 3)",
    )
    add(
        "--flights",
        type=_at_least_one,
        metavar="N",
        help="load at most this many flights",
    )
    add(
        "--data-dir",
        type=Path,
        default=DEFAULT_DATA_DIR,
        metavar="PATH",
        help="where the embedded server keeps its files (not used with DATABASE_URL)",
    )
    return parser.parse_args(arguments)


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: it must be at least 1")
    return value


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _expected_errors() -> tuple[type[Exception], ...]:
    """Return errors that are printed without a traceback."""
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management.base import CommandError
    from django.db import DatabaseError

    return (
        *(PostgresError, ProcessEnded, preparing.PortInUse, DataMissingError),
        *(CommandError, DatabaseError, ImproperlyConfigured),
    )


def _connect(stack: ExitStack, data_dir: Path) -> None:
    """Start the embedded server, unless DATABASE_URL names another, and set Django up."""
    import django

    if not os.environ.get("DATABASE_URL"):
        with timed("PostgreSQL") as tell:
            os.environ["DATABASE_URL"] = stack.enter_context(running_server(data_dir))
            tell("embedded server runs")
        stack.callback(os.environ.pop, "DATABASE_URL", None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "example_project.settings"
    django.setup()
    from django.db import connections

    stack.callback(connections.close_all)


def _run(options: argparse.Namespace) -> int:
    port = None if options.once else preparing.choose_port(options.port)
    preparing.prepare_database(options.flights)
    if port is None:
        return run_once(options.jobs, options.processes or 3)
    password = preparing.make_admin()
    with Processes() as running:
        with timed("Worker") as tell:
            processes = options.processes or 2
            start_worker(running, f"demo-{os.getpid()}", processes)
            tell(f"{processes} process{'es' * (processes > 1)}")
        with timed("Site") as tell:
            site = f"http://{HOST}:{port}/"
            running.start("site", "runserver", "--noreload", "--insecure", f"{HOST}:{port}")
            running.wait_until(lambda: _answers(site), "the site to answer")
            tell(site)
        if options.load != "none":
            with timed("Load") as tell:
                running.start("seeder", "seed_reports", f"--load={options.load}")
                tell(f"{options.load}, over all airlines")
        if options.troubles:
            with timed("Troubles") as tell:
                tell(f"{len(preparing.make_troubles())} problems to fix in the admin")
        print(_welcome(site, password, running.logs), flush=True)
        while True:
            running.check()
            time.sleep(0.5)


def _answers(site: str) -> bool:
    try:
        with urllib.request.urlopen(site, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _welcome(site: str, password: str, logs: Path) -> str:
    return f"""
Open

  {site}
      Choose an airline, request a report and watch it run. Open two airlines in two windows:
      neither waits for the other.

  {site}admin/tenantqueue/
      The dashboard: problems, workers, queues and tasks.
      User {preparing.ADMIN_NAME}, password {password}
      Change the slots of an airline's queue, or pause it, and watch the site.

  {site}admin/tenantqueue/concurrentjobmonitor/
      Monitors: a logbook for each plane of an airline, two at a time. Change “parallel”.

  {site}admin/flights/airline/
      Change an airline's plan. The slots and weight of its queues change with it.

To create problems that you can find and fix in the admin, run in another terminal

  {_short(sys.executable)} {_short(MANAGE)} make_troubles

The logs are in {logs}. Stop with CTRL-C, which ends all processes.
"""


def _short(path: str | Path) -> Path:
    """Return a path as it is typed in this directory."""
    full = Path(path).absolute()
    return full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full


if __name__ == "__main__":
    sys.exit(main())
