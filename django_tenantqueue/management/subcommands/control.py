"""manage.py tenantqueue pause, resume, cancel, retry, tune: one thing at a time, from a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from math import isfinite
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ... import control
from ...models import Job
from ...operations.targets import MODELS
from ..database import jobs_database
from ..numbers import row_number
from ..subcommand import Subcommand
from ..variables import FLAGS

KINDS = {
    "queue": "the queue of this name, of --tenant or of every tenant",
    "task": "the task of this name",
    "session": "the session of this key, of --tenant or of every tenant",
    "limit_user": "the user limit of this key, of --tenant or of every tenant",
    "monitor": "the monitor of this number",
    "job": "the waiting job of this number",
}
"""Options that name one thing, as the keywords of control do."""
OF_TENANTS = ("queue", "session", "limit_user")
NUMBERED = ("monitor", "job")
SELECTING = {*KINDS, "tenant", "allow_unknown", "using"}
"""Keywords of control.tune() that are no columns."""


class ControlSubcommand(Subcommand):
    """A verb of django_tenantqueue.control, and a line for each row that it was about."""

    kinds: tuple[str, ...] = ("queue", "task", "session", "limit_user", "monitor")
    """Options that choose the rows. Exactly one is required, or `--tenant` alone."""

    def add_kinds(self, parser: argparse.ArgumentParser, *, makes: bool) -> None:
        """Declare the options that name one thing. `makes`: the row of a task is made if needed."""
        for kind in self.kinds:
            if kind in NUMBERED:
                parser.add_argument(f"--{kind}", type=row_number, metavar="ID", help=KINDS[kind])
            else:
                parser.add_argument(_option(kind), help=KINDS[kind])
        parser.add_argument(
            "--tenant", help="exact tenant. Used alone, it means all queues of the tenant"
        )
        if makes:
            parser.add_argument(
                "--allow-unknown",
                action="store_true",
                help="also accept a task that this process does not know",
            )
        self.add_format(parser)
        self.add_database(parser)

    def chosen(self, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the kind of rows, and the keywords of control that name them."""
        given = {kind: options[kind] for kind in self.kinds if options[kind] is not None}
        tenant = options["tenant"]
        if len(given) != 1 and (given or tenant is None):
            names = ", ".join(map(_option, self.kinds))
            said = f"{' and '.join(map(_option, given))} are given: " if given else ""
            raise CommandError(
                f"{said}choose rows with one of {names}. Run the command once for each",
                returncode=2,
            )
        kind = next(iter(given), "queue")
        if tenant is not None:
            if kind not in OF_TENANTS:
                raise CommandError(
                    f"--tenant belongs to --queue, --session or --limit-user. A {kind} is chosen "
                    "alone",
                    returncode=2,
                )
            given["tenant"] = tenant
        if options.get("allow_unknown"):
            given["allow_unknown"] = True
        return kind, given

    def tell(
        self,
        kind: str,
        done: control.Result,
        using: str,
        options: Mapping[str, Any],
        *,
        changed: str,
        unchanged: str,
    ) -> None:
        """Print what became of each row; raise CommandError when one was refused."""
        groups = (
            (done.changed, changed),
            (done.requested, "asked to stop"),
            (done.unchanged, unchanged),
        )
        if options["format"] == "json":
            self.print_json(done._asdict())
        elif any(ids for ids, _ in groups):
            labels = _labels(kind, [pk for ids, _ in groups for pk in ids], using)
            for ids, what in groups:
                for pk in ids:
                    self.stdout.write(f"{labels.get(pk, f'#{pk}')}: {what}")
        elif not done.refused:
            self.stdout.write("nothing was changed: there is no such row")
        if done.refused:
            reasons = [f"#{pk} was refused: {why}" for pk, why in done.refused.items()]
            raise CommandError("\n".join(reasons))


def _option(kind: str) -> str:
    return f"--{kind.replace('_', '-')}"


def _labels(kind: str, ids: Iterable[int], using: str) -> dict[int, str]:
    """Return what rows are called. Jobs are called by their numbers."""
    model = MODELS[kind]
    if model is Job:
        return {}
    return {pk: str(row) for pk, row in model._default_manager.using(using).in_bulk(ids).items()}


class Pause(ControlSubcommand):
    """Pauses what its options name."""

    help = "Pause a queue, task, session, user limit or monitor."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.add_kinds(parser, makes=True)

    def handle(self, *args: Any, **options: Any) -> None:
        using, (kind, given) = jobs_database(options["database"]), self.chosen(options)
        done = control.pause(**given, using=using)
        self.tell(kind, done, using, options, changed="paused", unchanged="was paused already")


class Resume(ControlSubcommand):
    """Resumes what its options name."""

    help = "Resume what was paused, and sessions that halted."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.add_kinds(parser, makes=False)

    def handle(self, *args: Any, **options: Any) -> None:
        using, (kind, given) = jobs_database(options["database"]), self.chosen(options)
        done = control.resume(**given, using=using)
        self.tell(kind, done, using, options, changed="resumed", unchanged="was not paused")


class Cancel(ControlSubcommand):
    """Cancels jobs or a monitor."""

    help = "Cancel jobs, or a monitor with all its details."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("ids", nargs="*", type=_job_number, metavar="ID", help="numbers of jobs: 1753 or #1753")
        add("--monitor", type=row_number, metavar="ID", help=KINDS["monitor"])
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        using, (kind, given) = jobs_database(options["database"]), self.chosen(options)
        done = control.cancel(**given, using=using)
        self.tell(kind, done, using, options, changed="cancelled", unchanged="had ended already")

    def chosen(self, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return whether jobs or a monitor are named, and the keyword of control for them."""
        if bool(options["ids"]) == (options["monitor"] is not None):
            raise CommandError("give either numbers of jobs, or --monitor", returncode=2)
        if options["ids"]:
            return "job", {"job": options["ids"]}
        return "monitor", {"monitor": options["monitor"]}


class Retry(Cancel):
    """Retries jobs, or the failed details of a monitor."""

    help = "Make failed or cancelled jobs ready again, or a monitor's failed details."

    def handle(self, *args: Any, **options: Any) -> None:
        using, (kind, given) = jobs_database(options["database"]), self.chosen(options)
        done = control.retry(**given, using=using)
        self.tell(kind, done, using, options, changed="ready again", unchanged="nothing to retry")


class Tune(ControlSubcommand):
    """Writes columns of what its options name."""

    help = "Write columns of a queue, task, session, user limit, monitor or waiting job."
    kinds = tuple(KINDS)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "columns",
            nargs="+",
            type=_read_column,
            metavar="COLUMN=VALUE",
            help="what to write: num_slots=10, or max_per_second=none for no limit",
        )
        self.add_kinds(parser, makes=True)

    def handle(self, *args: Any, **options: Any) -> None:
        using, (kind, given) = jobs_database(options["database"]), self.chosen(options)
        columns = dict(options["columns"])
        if len(columns) < len(options["columns"]):
            raise CommandError("a column is given twice: give each once", returncode=2)
        written = [f"{name}={'none' if v is None else v}" for name, v in columns.items()]
        text = " ".join(written)
        done = control.tune(**given, **columns, using=using)
        self.tell(kind, done, using, options, changed=text, unchanged=f"had {text} already")


def _job_number(text: str) -> int:
    try:
        return row_number(text)
    except argparse.ArgumentTypeError as error:  # it may be the value of an option of bulk
        raise argparse.ArgumentTypeError(
            f"{error}. For all jobs of a task, tenant, queue or state use tenantqueue bulk"
        ) from None


def _read_column(text: str) -> tuple[str, Any]:
    name, given, value = text.partition("=")
    if not name or not given or not value:
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not COLUMN=VALUE, as in num_slots=10")
    if name in SELECTING:
        raise argparse.ArgumentTypeError(f"{name!r} is not a column: options choose the rows")
    if value.lower() == "none":
        return name, None
    if name in ("paused", "retired"):
        if (flag := FLAGS.get(value.lower())) is None:
            raise argparse.ArgumentTypeError(f"{text[:50]!r}: use {name}=yes or {name}=no")
        return name, flag
    for read in (int, float):
        with suppress(ValueError):
            number = read(value)
            if isinstance(number, float) and not isfinite(number):
                raise argparse.ArgumentTypeError(f"{text[:50]!r}: use none for no limit")
            return name, number
    return name, _read_moment(value) if name == "run_at" else value


def _read_moment(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise argparse.ArgumentTypeError(
            f"run_at={text[:50]!r}: give seconds from now, or a time such as 2026-05-20T15:30+00:00"
        )
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment
