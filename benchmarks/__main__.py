"""Measure the queue: ``python -m benchmarks``, or ``make bench``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType

import psycopg

from example_project.postgres import PostgresError, database

from .cases import NAMES
from .results import Incorrect, Row
from .server import APPLICATION, EMBEDDED_SETTINGS, Server


def _at_least_one(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is too few: at least 1")
    return value


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the queue with real workers on a real PostgreSQL: the one that "
        "DATABASE_URL names, else an embedded one. Exits with 1 when a result is wrong.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, one run: shows that everything works")
    add("--repeat", type=_at_least_one, metavar="N", help="runs per figure (3; with --quick 1)")
    add(
        "--patience",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="before each measurement, wait at most this long for other programs to be quiet",
    )
    add("--case", action="append", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    add("--markdown", action="store_true", help="print the report as Markdown")
    add("--json", type=Path, metavar="FILE", help="write everything that was measured to FILE")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the report; return the exit code."""
    options = _parse(arguments)
    # Ends the workers and drops the databases, as CTRL-C does.
    signal.signal(signal.SIGTERM, _on_terminate)
    try:
        with database(EMBEDDED_SETTINGS) as url, tempfile.TemporaryDirectory() as directory:
            return _measure(options, url, Path(directory))
    except PostgresError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _on_terminate(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _measure(options: argparse.Namespace, url: str, directory: Path) -> int:
    os.environ["DATABASE_URL"] = url
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
    os.environ["BENCHMARK_APPLICATION"] = APPLICATION
    import django

    django.setup()
    # These need the settings.
    from . import report
    from .bench import Bench

    repeat = options.repeat or (1 if options.quick else 3)
    rows: list[Row] = []
    failures: dict[str, str] = {}
    try:
        server = Server(url)
    except psycopg.OperationalError as error:
        raise PostgresError(f"The server of DATABASE_URL does not answer: {error}") from error
    bench = Bench(server, directory, repeat=repeat, quick=options.quick, patience=options.patience)
    try:
        facts = report.describe(server, repeat=repeat, quick=options.quick)
        for name in NAMES:
            if options.case and name not in options.case:
                continue
            began = time.monotonic()
            try:
                for row in import_module(f".cases.{name}", __package__).run(bench):
                    rows.append(row)
                    _say(f"{row.case}: {row.what}: {row.median.value:,.{row.digits}f} {row.unit}")
            except Incorrect as error:
                failures[name] = "\n".join([str(error), *getattr(error, "__notes__", [])])
                _say(f"{name}: WRONG: {failures[name]}")
            except Exception as error:  # noqa: BLE001 what has been measured is still printed
                failures[name] = traceback.format_exc()
                _say(f"{name}: {error!r}")
            _say(f"{name}: {time.monotonic() - began:.0f} s")
    finally:
        bench.close()
        server.close()
    print(report.as_markdown(facts, rows) if options.markdown else report.as_text(facts, rows))
    if options.json:
        text = json.dumps(report.as_json(facts, rows, failures), indent=2, ensure_ascii=False)
        options.json.write_text(text + "\n")
    for name, failure in failures.items():
        print(f"\nWRONG: {name}: {failure}")
    return 1 if failures else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
