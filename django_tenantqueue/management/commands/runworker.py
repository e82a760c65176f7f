"""manage.py runworker"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import socket
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from django import get_version
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from ... import __version__
from ...calls.sources import registered_tasks
from ...checks import check_database
from ...conf import get_settings, main_database, process_database
from ...databases import all_databases, are_several
from ...exceptions import InvalidOption
from ...executors import load_executor
from ...features import Feature, Service, hooks
from ...models.worker import THREADS
from ...operations.declared import add_rates
from ...queries.base import ready_connection
from ...queries.workers import connection_budget, read_clock_ahead
from ...schema import missing_table
from ...status.clock import clock_text
from ...status.queue_loads import unknown_queues
from ...status.thresholds import CLOCK_SECONDS
from ...text import number_of
from ...worker.config import ASYNC_SLOTS, WorkerConfig
from ...worker.supervisor.health_port import HealthPort
from ...worker.supervisor.reload import Reloader
from ...worker.supervisor.supervisor import Supervisor
from ..database import jobs_database, telling_database_errors
from ..numbers import seconds, whole_number
from ..variables import AddNames, near_misses, take_variables


def _bytes(megabytes: int | None) -> int | None:
    return megabytes << 20 if megabytes else None


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} has an empty name (is a variable unset?): give names with commas, or "
            "leave the option out"
        )
    return names


def _all(flag: str, values: list[list[str] | str] | None) -> tuple[str, ...]:
    """Return the names that an option lists; none for "*", which stands for all."""
    try:  # call_command() hands over the texts as they are
        lists = [_names(names) if isinstance(names, str) else names for names in values or ()]
    except argparse.ArgumentTypeError as error:
        raise CommandError(str(error), returncode=2) from None
    names = tuple(dict.fromkeys(name for names in lists for name in names))
    if "*" in names:
        if flag == "--exclude-queues":
            raise CommandError(f"{flag}='*' would leave no queue: give names", returncode=2)
        return ()
    for name in names:
        if "*" in name:
            raise CommandError(
                f"{flag}={name!r} is a pattern: give whole names, or '*' alone for all",
                returncode=2,
            )
    return names


def start_lines(config: WorkerConfig) -> Iterator[str]:
    """Yield what a worker says at its start: versions, database, what it serves and how."""
    yield (
        f"django_tenantqueue {__version__}, Django {get_version()}, "
        f"Python {platform.python_version()}"
    )
    server = ready_connection(connections[config.database]).info
    version = server.parameter_status("server_version") or "?"
    yield (
        f"database {config.database}: {server.dbname} on {server.host or 'a local socket'}:"
        f"{server.port}, PostgreSQL {version.partition(' ')[0]}"
    )
    served = [", ".join(config.queues) or "all"]
    if config.exclude_queues:
        served.append(f"but not {', '.join(config.exclude_queues)}")
    if config.tenants:
        served.append(f"of the tenants {', '.join(config.tenants)}")
    tasks = sum(not name.startswith("django_tenantqueue.") for name in registered_tasks())
    yield f"queues: {' '.join(served)}; {number_of('task', tasks)}"
    yield _start_text(config)


def _start_text(config: WorkerConfig) -> str:
    if config.dispatch is not None:
        return (
            f"dispatcher {config.name}: sends jobs to the executor {config.dispatch}, at most "
            f"{config.threads} that no process has taken. Stop with CTRL-C."
        )
    many = config.processes != 1
    processes = f"{config.processes} process" + ("es, each with" if many else " with")
    threads = number_of("thread", config.threads)
    slots = number_of("coroutine slot", config.async_slots)
    return f"worker {config.name}: {processes} {threads} and {slots}. Stop with CTRL-C."


class Command(BaseCommand):
    """Claims and runs jobs until it is stopped."""

    help = (
        "Run a worker, which claims and runs jobs. Environment variables set options that the "
        "command line leaves out: TENANTQUEUE_THREADS=16 is --threads 16."
    )
    requires_system_checks = ["tenantqueue"]
    variables: AbstractSet[str] = frozenset()
    """The names of the variables that set options."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        of_django = len(parser._actions)
        add = parser.add_argument
        add(
            "--processes",
            type=whole_number(1, 1_000),
            default=1,
            help="child processes (default 1)",
        )
        add(
            "--threads",
            type=whole_number(1, 10_000),
            help=f"threads per child (default {THREADS})",
        )
        add(
            "--async-slots",
            type=whole_number(1, 10_000),
            help=f"coroutine jobs at once per child (default {ASYNC_SLOTS})",
        )
        for option, text in (
            ("--queues", "run only jobs of these queues"),
            ("--exclude-queues", "run no jobs of these queues"),
            ("--tenants", "run only jobs of these tenants"),
        ):
            add(option, action=AddNames, type=_names, metavar="NAME[,NAME…]", help=text)
        add(
            "--dispatch",
            metavar="EXECUTOR",
            help="send the jobs of this executor's queues to the executor, and run none here",
        )
        add(
            "--until-empty",
            "--burst",
            action="store_true",
            help="exit when no job is ready (--burst is the same)",
        )
        add(
            "--shutdown-timeout",
            type=seconds,
            default=30.0,
            metavar="SECONDS",
            help="time for running jobs to finish after a stop (default 30)",
        )
        add(
            "--max-jobs",
            type=whole_number(1, 1_000_000_000),
            metavar="N",
            help="replace a child process after this many jobs",
        )
        add(
            "--max-rss",
            type=whole_number(1, 1 << 30),
            metavar="MB",
            help="replace a child process above this memory, after its running jobs end",
        )
        add(
            "--kill-rss",
            type=whole_number(1, 1 << 30),
            metavar="MB",
            help="kill a child process above this memory (default: twice --max-rss)",
        )
        add(
            "--heartbeat-file",
            metavar="PATH",
            help="write a status file every second for liveness and readiness probes",
        )
        add(
            "--health-port",
            type=whole_number(1, 65_535),
            metavar="PORT",
            help="answer HTTP probes at this port: GET /live and GET /ready",
        )
        add(
            "--log-jobs",
            action="store_true",
            help="log one line for each run that ends, to the logger django_tenantqueue",
        )
        for add_own in hooks(Feature.worker_arguments):
            add_own(parser)
        add(
            "--reload",
            action="store_true",
            help="restart when a Python file of the project changes (for development)",
        )
        add(
            "--database",
            help="alias of the jobs' database (must be TENANTQUEUE['DATABASE'], or one of SHARDS)",
        )
        add("--name", help="name of this worker (default: host-pid)")
        add(
            "--no-maintenance",
            action="store_true",
            help="do no maintenance (promote, history) in this worker",
        )
        self.variables = take_variables(parser, parser._actions[of_django:])

    def execute(self, *args: Any, **options: Any) -> Any:
        """Run the command; name the variables when what they set does not fit."""
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            used = sorted(os.environ.keys() & self.variables)
            if error.returncode != 2 or not used:
                raise
            text = f"{error}\nThe environment sets {', '.join(used)}"
            raise CommandError(text, returncode=2) from error

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reload"]:
            code = Reloader(say=self.stderr.write).run()
            raise SystemExit(code)
        for text in near_misses(self.variables):
            self.stderr.write(self.style.WARNING(text))
        config = self._config(options)
        if config.max_rss and config.kill_rss and config.kill_rss <= config.max_rss:
            raise CommandError(
                f"--kill-rss={options['kill_rss']} is not above --max-rss={options['max_rss']}: a "
                "child would be killed before its running jobs end",
                returncode=2,
            )
        if config.dispatch is not None and (options["threads"] or options["async_slots"]):
            raise CommandError(
                "--dispatch runs no jobs here: leave out --threads and --async-slots",
                returncode=2,
            )
        if both := set(config.queues).intersection(config.exclude_queues):
            raise CommandError(
                f"--queues and --exclude-queues both name {', '.join(sorted(both))}: leave out one",
                returncode=2,
            )
        jobs_database(config.database)
        ours = main_database()
        if config.database not in all_databases():
            raise CommandError(
                f"--database={config.database!r} is not the jobs' database {ours!r}, which "
                "TENANTQUEUE['DATABASE'] names and where what tasks enqueue goes: leave "
                f"--database out, or set TENANTQUEUE['DATABASE'] = {config.database!r} for this "
                "worker and for all that enqueue its jobs",
                returncode=2,
            )
        if config.dispatch is not None and config.database != ours:
            raise CommandError(
                f"--dispatch={config.dispatch}: processes of an executor run jobs of the database "
                f"{ours!r} alone. Let workers run the jobs of {config.database!r}",
                returncode=2,
            )
        with process_database(config.database if are_several() else None):
            code = self._run(config, options)
        if code:
            raise SystemExit(code)

    def _run(self, config: WorkerConfig, options: dict[str, Any]) -> int:
        """Check the database, run the worker until it ends, and return its exit code."""
        for problem in check_database(databases=[config.database]):
            text = f"{problem.msg}\n{problem.hint} ({problem.id})"
            if problem.is_serious() or problem.id == "tenantqueue.W006":
                raise CommandError(text)
            self.stderr.write(self.style.WARNING(text))
        with telling_database_errors(config.database):
            for name in unknown_queues(config.database, (*config.queues, *config.exclude_queues)):
                self.stderr.write(
                    self.style.WARNING(f"no queue is named {name!r} yet; it may be created later")
                )
            services = [
                service
                for of_feature in hooks(Feature.services)
                for service in of_feature(config.database, options)
            ]
            self._warn_of_connections(config, services)
            self._warn_of_clock(config)
        health_port = self._health_port(options["health_port"])
        self._warn_of_log(config)
        self._sync_declared(config)
        verbose = options["verbosity"] > 0
        if verbose:
            for line in start_lines(config):
                self.stdout.write(line)
        connections.close_all()  # children would share them
        supervisor = Supervisor(
            config,
            services=services,
            health_port=health_port,
            say=lambda text: self.stderr.write(text) if verbose else None,
        )
        return supervisor.run()

    def _warn_of_connections(self, config: WorkerConfig, services: Sequence[Service] = ()) -> None:
        if get_settings().pooler:
            return  # what it allows is not known
        allowed, fleet = connection_budget(config.database)
        threads = 0 if config.dispatch is not None else config.threads
        own = config.processes * (threads + 1) + 2 + len(services)
        if own + fleet > allowed:
            others = f" and the other workers {fleet}" if fleet else ""
            self.stderr.write(
                self.style.WARNING(
                    f"this worker may open {own} database connections{others}; the server allows "
                    f"{allowed} in all. Use fewer --threads or --processes, raise "
                    "max_connections, or put a pooler before the server."
                )
            )

    def _health_port(self, port: int | None) -> HealthPort | None:
        if port is None:
            return None
        try:
            return HealthPort(port)
        except OSError as error:
            raise CommandError(
                f"--health-port={port} cannot be opened: {error.strerror}. Does another worker of "
                "this machine use it?",
                returncode=2,
            ) from None

    def _warn_of_clock(self, config: WorkerConfig) -> None:
        ahead = read_clock_ahead(config.database)
        if abs(ahead) > CLOCK_SECONDS:
            self.stderr.write(self.style.WARNING(clock_text(ahead)))

    def _warn_of_log(self, config: WorkerConfig) -> None:
        logger = logging.getLogger("django_tenantqueue")
        if config.log_jobs and not (logger.isEnabledFor(logging.INFO) and logger.hasHandlers()):
            self.stderr.write(
                self.style.WARNING(
                    "--log-jobs logs to 'django_tenantqueue' at INFO, which LOGGING drops: give "
                    'this logger a handler and "level": "INFO"'
                )
            )

    def _sync_declared(self, config: WorkerConfig) -> None:
        """Write the rows that the code declares; an error does not stop the worker."""
        try:
            for bring_in_line in hooks(Feature.worker_started):
                bring_in_line(config.database)
            add_rates(config.database)
        except DatabaseError as error:
            told = missing_table(error) or str(error).strip()
            text = f"writing what the code declares failed: {told}"
            self.stderr.write(self.style.WARNING(text))

    def _config(self, options: dict[str, Any]) -> WorkerConfig:
        window = self._window(options["dispatch"])
        return WorkerConfig(
            database=options["database"] or get_settings().database,
            name=options["name"] or f"{socket.gethostname()}-{os.getpid()}",
            processes=options["processes"],
            threads=window or options["threads"] or THREADS,
            async_slots=window or options["async_slots"] or ASYNC_SLOTS,
            queues=_all("--queues", options["queues"]),
            exclude_queues=_all("--exclude-queues", options["exclude_queues"]),
            tenants=_all("--tenants", options["tenants"]),
            until_empty=options["until_empty"],
            shutdown_timeout=options["shutdown_timeout"],
            maintenance=not options["no_maintenance"],
            max_jobs=options["max_jobs"],
            max_rss=_bytes(options["max_rss"]),
            kill_rss=_bytes(options["kill_rss"] or (options["max_rss"] or 0) * 2),
            heartbeat_file=options["heartbeat_file"],
            log_jobs=options["log_jobs"],
            dispatch=options["dispatch"],
        )

    def _window(self, executor: str | None) -> int | None:
        """Return how many jobs a dispatcher may have sent; None: it is none."""
        if executor is None:
            return None
        try:
            return load_executor(executor).window
        except InvalidOption as error:
            raise CommandError(f"--dispatch={executor}: {error}", returncode=2) from None
