"""The report: the machine, the versions, the settings, and a line for each figure."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import psycopg

import django_tenantqueue

from .results import Cost, Row
from .server import Server

HEADINGS = (
    "case",
    "what",
    "median",
    "worst",
    "unit",
    "target",
    "met",
    "PG CPU µs/job",
    "WAL B/job",
    "Python CPU µs/job",
    "other cores",
    "of the median run",
)
LEFT = {"case", "what", "unit", "target", "met", "of the median run"}
BUSY_CORES = 0.25
"""Other programs that used more than this make a figure doubtful."""


def describe(server: Server, *, repeat: int, quick: bool) -> dict[str, str]:
    """Return what has to be known to compare figures."""
    cores = psutil.cpu_count() or 1
    physical = psutil.cpu_count(logical=False) or cores
    settings = ", ".join(f"{name} {value}" for name, value in server.settings().items())
    return {
        "machine": f"{_cpu_model()}, {cores} cores ({physical} physical), "
        f"{psutil.virtual_memory().total / 2**30:.1f} GB, {platform.system()} "
        f"{platform.release()}",
        "versions": f"django_tenantqueue {django_tenantqueue.__version__}, "
        f"Python {platform.python_version()}, Django {version('django')}, "
        f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__}), PostgreSQL {server.version()}",
        "PostgreSQL": settings,
        "worker": "manage.py runworker --processes N (1 unless named), default settings",
        "runs": f"median of {repeat}, the worst beside it"
        + (", reduced sizes: these figures only show that everything works" if quick else ""),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _per_job(used: float | None, jobs: int, scale: float) -> str:
    return "–" if used is None or not jobs else f"{used * scale / jobs:,.0f}"


def cells(row: Row) -> tuple[str, ...]:
    """Return the texts of one line."""
    sample = row.median
    cost = sample.cost or Cost(0.0, None, None, 0.0, 0.0)
    jobs = sample.jobs if sample.cost else 0
    others = f"{cost.other_cores:.2f}" if sample.cost else "–"
    return (
        row.case,
        row.what,
        _number(sample.value, row.digits),
        _number(row.worst, row.digits),
        row.unit,
        "" if row.target is None else str(row.target),
        {None: "", True: "yes", False: "NO"}[row.met],
        _per_job(cost.server_cpu_seconds, jobs, 1e6),
        _per_job(cost.wal_bytes, jobs, 1),
        _per_job(cost.python_cpu_seconds, jobs, 1e6),
        others + ("!" if cost.other_cores > BUSY_CORES else ""),
        sample.note,
    )


def as_text(facts: dict[str, str], rows: Sequence[Row]) -> str:
    """Return the report as aligned text."""
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {value}" for name, value in facts.items()]
    table = [HEADINGS, *map(cells, rows)]
    widths = [max(len(line[n]) for line in table) for n in range(len(HEADINGS))]
    lines.append("")
    for number, line in enumerate(table):
        padded = (
            f"{cell:<{w}}" if heading in LEFT else f"{cell:>{w}}"
            for cell, w, heading in zip(line, widths, HEADINGS, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
        if number == 0:
            lines.append("  ".join("-" * w for w in widths))
    return "\n".join([*lines, "", *_legend(rows)])


def as_markdown(facts: dict[str, str], rows: Sequence[Row]) -> str:
    """Return the report as Markdown."""
    lines = [f"- **{name}**: {value}" for name, value in facts.items()]
    lines += ["", f"| {' | '.join(HEADINGS)} |"]
    lines.append("|" + "|".join(" --- " if h in LEFT else " ---: " for h in HEADINGS) + "|")
    lines += [f"| {' | '.join(cells(row))} |" for row in rows]
    return "\n".join([*lines, "", *_legend(rows)])


def _legend(rows: Sequence[Row]) -> Iterator[str]:
    yield (
        "Python CPU is that of the workers; where jobs are only put in, that of the one who does. "
        "Other cores: used by other programs meanwhile"
        + (
            f'; "!" is more than {BUSY_CORES}: do not trust the figure.'
            if any(row.median.cost and row.median.cost.other_cores > BUSY_CORES for row in rows)
            else "."
        )
    )


def as_json(facts: dict[str, str], rows: Sequence[Row], failures: dict[str, str]) -> dict[str, Any]:
    """Return the report for another program."""
    return {
        "facts": facts,
        "rows": [row.as_json() for row in rows],
        "failures": failures,
    }
