"""The hooks through which an installed app extends the core.

An app names its feature in its AppConfig, and overrides the methods that it needs:

    class DeliveriesConfig(AppConfig):
        name = "shop.deliveries"
        tenantqueue_features = ("shop.deliveries.feature.Deliveries",)

The core imports no optional app. `hooks(Feature.duties)` returns this method of each feature that
overrides it, in the order of INSTALLED_APPS.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import connections, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from .exceptions import InvalidOption

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from datetime import datetime

    from django.core.management.base import BaseCommand
    from django.db.models import Model
    from django.http import HttpRequest
    from django.urls import URLPattern

    from .calls.call import Call
    from .calls.options import Options
    from .calls.sources import RegisteredTask
    from .models import Job
    from .status.conditions.look import Look
    from .tasks import Task

logger = logging.getLogger("django_tenantqueue")
LONGEST_NAME = 50
"""Characters in the name of a duty, and in the code of a condition: those of their columns."""
LONGEST_KEY = 400
"""Characters that identify an object with a problem. An index has them."""
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Duty:
    """A maintenance task. One worker runs it for all, in bounded steps at an interval.

    duties.WhenDue has the step and the pause of work with a due time of its own.
    """

    name: str
    """The name of the task in the admin's list of maintenance tasks."""
    step: Callable[[str], object]
    """A function that does one step. It takes the alias of the database, and returns a true value
    if it found work."""
    interval: float | timedelta
    """The time from one step to the next: seconds or a timedelta."""
    full_step: int | None = None
    """The number of rows in a full step. If `step` returns this number or more, the next step
    follows at once. None: the next step always follows after `interval`."""
    pause_after: Callable[[object], float] | None = None
    """A function that takes the return value of `step`, and returns the seconds until the next
    step, at most `interval`. If it is set, `full_step` has no effect. None: `interval` and
    `full_step` decide."""
    interval_seconds: float = field(default=0.0, init=False)
    """The interval in seconds."""
    due_at: float = field(default=0.0, init=False)
    """Internal, as are the fields below."""
    runs: int = field(default=0, init=False)
    """Runs that are not recorded yet."""
    record_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Raise InvalidOption for what would stop the worker later."""
        seconds = self.interval
        if isinstance(seconds, timedelta):
            seconds = seconds.total_seconds()
        if not isinstance(seconds, int | float):
            raise InvalidOption(
                f"duty {self.name!r}: interval={self.interval!r} must be seconds or a timedelta"
            )
        self.interval_seconds = float(seconds)
        if len(self.name) > LONGEST_NAME:
            raise InvalidOption(f"duty {self.name!r}: use a name of at most 50 characters")


class Severity(StrEnum):
    """What ends a condition."""

    PEOPLE = "people"
    """An operator has to act."""
    TIME = "time"
    """It ends when time passes or other jobs end."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One object that has a condition.

    `key` identifies it in all checks. `label` is its name, and `text` the problem. `tenant`: "" is
    no tenant, None the tenant of the rule.
    """

    key: str
    label: str
    text: str
    tenant: str | None = None


class Named(str):
    """A text in `names` of a condition, with what identifies its object.

    Operators mute the problem of one object by `tenant` and `key`. A plain text is its own key, of
    no tenant.
    """

    key: str
    """The object in all checks, while the text may change. The default is the text."""
    tenant: str | None
    """The tenant of the object. "" is no tenant, None an object of the fleet."""
    jobs: int
    """The jobs that the object adds to the number in the sentence."""

    def __new__(
        cls, text: str, key: str | None = None, *, tenant: str | None = None, jobs: int = 0
    ) -> Named:
        """Return the text with its object."""
        self = super().__new__(cls, text)
        self.key = (text if key is None else key)[:LONGEST_KEY]
        self.tenant, self.jobs = tenant, jobs
        return self


class Scope(Protocol):
    """The scope of an alert rule. `tenant` None is every tenant. An empty name matches all."""

    tenant: str | None
    queue: str
    task: str
    range_minutes: int

    @property
    def least(self) -> float:
        """The threshold."""


@dataclass(frozen=True, slots=True)
class Watch:
    """How alert rules watch a condition object by object, with a threshold."""

    find: Callable[[Any, Any, Collection[str]], Iterator[Sighting]]
    """Takes a Look, a Scope, and the keys of open alerts. Yields the objects of open alerts first,
    and a limited number of them."""
    least: float = 0.0
    """The default threshold."""
    unit: str = ""
    """Unit of the threshold: seconds, percent, number, or ""."""
    scopes: Sequence[str] = ()
    """What a rule may select besides a tenant: "queue", "task"."""
    of_tenants: bool = True
    """Whether a rule may select a tenant."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A possible problem. Its texts are lazy translations, with placeholders in `%(…)s`."""

    code: str
    """The unique name of the condition in JSON, metrics and alert rules."""
    severity: Severity
    """`Severity.PEOPLE`: the condition lasts until an operator acts. `Severity.TIME`: the condition
    ends when time passes or other jobs end."""
    title: Any = ""
    """The name of the condition in lists, filters and alert rules."""
    job: Any = ""
    """The sentence about a job that does not run because of the condition. Only conditions of the
    core have it."""
    remedy: Any = ""
    """The sentence that says how to end the condition."""
    fleet: Any = ""
    """The sentence about the condition in `tenantqueue status`, with placeholders for the values
    that `find` yields. `names` is a list of texts: the sentence shows the first five names and the
    number of the others. Use `Named` for the objects of tenants, and for texts that change."""
    where: str = ""
    """The list in the admin where operators end the condition: a key of Feature.lists(), or of the
    lists of the core."""
    filter: str = ""
    """The query string that filters the list `where` for the affected rows."""
    find: Callable[[Look], Iterable[Mapping[str, Any]]] | None = None
    """A function that takes a Look: `using` is the alias of the database, and `tenants` are the
    tenants to report (None: all). The function yields a dictionary for each problem, with the
    values for `fleet`. It must read a limited number of rows. An alert rule opens one alert for
    each text in `names`. None: `tenantqueue status` does not check the condition."""
    of_tenants: bool = False
    """True: users who see only some tenants see the condition, too, and `find` must respect
    `Look.tenants`."""
    watch: Watch | None = None
    """How alert rules check the condition. None: by `find`."""


@dataclass(frozen=True, slots=True)
class Muted:
    """Until when a problem is muted, by whom and why. `ids`: of the rows of Mute."""

    until: datetime
    by: str
    reason: str
    ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class Problem:
    """A condition that holds now. See Condition for `where`, `filter` and `remedy`."""

    code: str
    text: str
    where: str
    filter: str = ""
    remedy: str = ""
    task: str = ""
    """The failing task."""
    objects: Sequence[Named] = field(default=(), compare=False)
    """The objects that have the problem. A problem without objects has one without a name."""
    muted: Muted | None = None


class Service(Protocol):
    """A service in threads of a worker's supervisor.

    It opens at most one connection to the database at a time. `runworker` counts this connection.
    """

    def start(self) -> None:
        """Start. Called once, after the children were started."""

    def close_in_child(self) -> None:
        """Release the supervisor's resources in a forked child."""

    def close(self) -> None:
        """Stop. Called after the last child has ended."""


class Feature:
    """The hooks of an app. All methods of this class do nothing."""

    settings: type[Any] | None = None
    """A frozen dataclass of the app's own settings, like Settings in settings.py.

    Its class variable `group` is the name of their dict in TENANTQUEUE. Fields may have Rules. For
    other rules, a method `check` raises InvalidOption. conf.settings_of() returns the values.
    Example: contrib.http."""

    # start

    def ready(self) -> None:
        """Import modules that declare tasks, and register system checks.

        Called once by django.setup(), after all models and the apps' `tasks` modules were loaded.
        Example: contrib.alerts.
        """

    # databases

    def databases(self) -> Sequence[str]:
        """Return the aliases of all databases with jobs; none: TENANTQUEUE["DATABASE"] alone.

        Example: contrib.shards.
        """
        return ()

    def choose_database(self, tenant: str) -> str | None:
        """Return the database of a tenant's jobs. None: the current one. "" is no tenant.

        Called for each enqueue, so cache what you read. Raises TenantQueueError. Example:
        contrib.shards.
        """
        return None

    def find_database(self, row_id: int, is_monitor: bool) -> str | None:
        """Return the database of the job, or of the monitor, of an id. None: the current one.

        Example: contrib.shards.
        """
        return None

    def check_enqueue(self, using: str, tenant: str, task: str) -> None:
        """Raise TenantQueueError for a job that cannot be enqueued in a database.

        `task`: the name of its task. Called for each call that enqueues. Example: contrib.shards.
        """

    def check_queue(self, using: str, tenant: str) -> None:
        """Raise TenantMoving when a tenant's jobs cannot be enqueued in a database right now.

        Called before a queue is made there, and for a retired one. Example: contrib.shards.
        """

    def switch_queues(
        self, using: str, queue_ids: Collection[int], columns: Mapping[str, bool]
    ) -> None:
        """Note what an operator sets `paused` and `retired` of queues to, also to the same value.

        Called before it is written, in the same transaction. Example: contrib.shards.
        """

    # enqueue

    def task_options(self) -> Mapping[str, Callable[[Task[..., Any], Any], Any]]:
        """Return the app's options of @task, each with the function that reads its value.

        The function takes the task and the value. The task has its name, function and job options.
        The function returns the value of `task.extra[option]`, or raises InvalidOption. Called for
        each declared task with an option that the core does not know. The models may not be loaded
        yet. Example: contrib.schedules (`schedule=`).
        """
        return {}

    def adopt(self, target: object, options: Mapping[str, Any]) -> RegisteredTask | None:
        """Return a task that wraps `target`. None: the app does not know such a target.

        `options`: the options of @task. Called by @task and delayed() for objects that are neither
        plain functions nor tasks of this package. Example: contrib.celery.
        """
        return None

    def choose_queue(self, using: str, tenant: str, task: str) -> str | None:
        """Return the queue of a new job whose call sets no queue. None: the next feature decides.

        `task`: the name of the job's task. Called for each such job, so cache what you read for a
        second.
        Example: contrib.routing.
        """
        return None

    def queue_names(self) -> Iterable[str]:
        """Yield the names of the queues of the app's own jobs.

        STRICT_QUEUES allows them. Example: contrib.alerts.
        """
        return ()

    def follow_ups(self, options: Options, tenant: str) -> Iterable[Call]:
        """Yield the calls to enqueue when a job with these options has ended, in any state.

        Called at the enqueue of a job, unless its options are plain (see Options.is_plain). Raises
        InvalidArgument. Example: contrib.http (`callback_url=`).
        """
        return ()

    # workers

    def worker_started(self, using: str) -> None:
        """Update the app's rows to match the declarations in code.

        Called by `runworker` before its children are started. Example: contrib.schedules.
        """

    def worker_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments to `runworker`. Example: contrib.prometheus (`--metrics-port`)."""

    def services(self, using: str, options: Mapping[str, Any]) -> Iterable[Service]:
        """Yield services that a supervisor runs beside its children.

        `options`: the arguments of `runworker`. Raises CommandError. Example: contrib.prometheus.
        """
        return ()

    def duties(self) -> Iterable[Duty]:
        """Yield the app's maintenance tasks. One worker runs them for the whole fleet.

        Called once in each supervisor. In each round they follow the maintenance tasks of the core.
        Example: contrib.alerts.
        """
        return ()

    def before_thinning(self, using: str, now: datetime | None) -> tuple[datetime, bool]:
        """Read the figures of minutes before they are merged into hours.

        Return the time up to which they were read, and whether earlier ones are left. Later minutes
        are not merged yet. `now` None is the database's clock. Called about once a minute. Example:
        contrib.prometheus.
        """
        return now or timezone.now(), False

    def history_kept_from(
        self, using: str, now: datetime, before: datetime | None
    ) -> datetime | None:
        """Return the time before which no finished job is kept. None: all finished jobs are kept.

        `before`: the time by the setting HISTORY_KEEP_MONTHS, or the result of the previous
        feature. Months that end by the returned time are dropped. Called every ten minutes.
        Example: contrib.retention.
        """
        return before

    # operators

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        """Return the app's subcommands of `manage.py tenantqueue`, with their names as keys.

        A name is a verb, or a noun and a verb. The list of subcommands shows `help` of the class.
        Subclasses of `management.subcommand.Subcommand` record the user of the shell in the audit
        log. Example: contrib.schedules (`schedules list`).
        """
        return {}

    def conditions(self) -> Iterable[Condition]:
        """Return the app's conditions, which are checked after those of the core.

        `tenantqueue status`, the dashboard and the metrics check them. Example: contrib.routing.
        """
        return ()

    def home_problems(self, request: HttpRequest) -> Iterable[Mapping[str, str]]:
        """Yield problems to show first on the dashboard, each a dict with `text` and `url`.

        Example: contrib.alerts.
        """
        return ()

    def admin_panels(self, request: HttpRequest) -> Iterable[tuple[Any, Any]]:
        """Yield the title and the content of each panel that the app adds to the dashboard.

        Content that is not marked as safe is escaped. Called each time the page is shown or
        refreshed, for users who may view tenant queues. Check other permissions of the user.
        Example: the how-to page about apps of your own.
        """
        return ()

    def job_facts(self, request: HttpRequest, job: Job) -> Iterable[tuple[Any, Any]]:
        """Yield the name and the value of each line that the app adds to the admin's page of a job.

        Values that are None or "" are left out. Example: the how-to page about apps of your own.
        """
        return ()

    def lists(self) -> Mapping[str, type[Model]]:
        """Return the app's values of `Condition.where`, each with the model of its admin list.

        The page of a tenant shows the tenant's rows of those models that tenant_tables() has, too.
        Example: contrib.schedules.
        """
        return {}

    def operations(self) -> Mapping[type[Model], Mapping[str, Callable[..., Collection[int]]]]:
        """Return the verbs of `control` for rows of the app's models.

        Each verb, such as `pause` or `delete`, has a function. It takes the ids of existing rows
        and the keyword `using`; for `tune` also the columns. It records the change, and returns the
        ids of the changed rows. Example: contrib.schedules.
        """
        return {}

    def audited(self) -> Mapping[str, type[Model]]:
        """Return the models whose changes the audit log records, by `Change.object_kind`.

        Example: contrib.retention.
        """
        return {}

    # tenants

    def tenant_tables(self) -> Mapping[type[Model], str]:
        """Return the app's models with rows of a tenant, each with the lookup that finds the rows.

        `queue_id__in` looks for the ids of the tenant's queues, every other lookup for the tenant.
        The erasure of a tenant deletes the rows in this order, before those of the core. Example:
        contrib.schedules.
        """
        return {}

    def fleet_tables(self) -> Sequence[type[Model]]:
        """Return the app's models without rows of a tenant. Example: contrib.prometheus."""
        return ()

    def close_tenant(self, using: str, tenant: str) -> None:
        """Make the app enqueue no more jobs of a tenant, which is about to be erased.

        Called in a transaction. Example: contrib.schedules.
        """

    def forget_tenant(self, using: str, tenant: str) -> None:
        """Remove a tenant from rows about several tenants. Example: contrib.alerts."""

    # web and tests

    def urls(self) -> Sequence[URLPattern]:
        """Return URL patterns to add to `django_tenantqueue.web.urls`.

        Example: contrib.prometheus.
        """
        return ()

    def forget(self) -> None:
        """Clear caches of rows in this process. Called after a test or an erasure deleted rows.

        Example: contrib.routing.
        """

    def run_due(self, using: str) -> bool:
        """Do the work of the app that is due, and return whether there was any. For tests only.

        Called by testing.run_pending(), because no worker runs. Example: contrib.schedules.
        """
        return False


class FeatureApp(AppConfig):
    """An optional app of this package. Its tables are in the jobs' database."""

    default = False  # Django takes the one class of a module that may be its app
    default_auto_field = "django.db.models.BigAutoField"
    tenantqueue_features: Sequence[str] = ()
    needs: Sequence[str] = ()
    """Other optional apps that must be installed."""

    def __init_subclass__(cls) -> None:
        cls.default = True

    def import_models(self) -> None:
        """Import them. Raises ImproperlyConfigured for an app that is not installed."""
        for needed in ("django_tenantqueue", *self.needs):
            if not apps.is_installed(needed):
                raise ImproperlyConfigured(f"{self.name} needs {needed} in INSTALLED_APPS")
        super().import_models()


def check_installed(module: str) -> None:
    """Raise ImproperlyConfigured when the optional app of a module is not installed.

    Without it Django would take the models there for the core's.
    """
    app = ".".join(module.split(".")[:3])
    if apps.apps_ready and not apps.is_installed(app):
        raise ImproperlyConfigured(f"{module} needs {app} in INSTALLED_APPS")


@cache
def installed() -> tuple[Feature, ...]:
    """Return the features of all apps.

    Raises AppRegistryNotReady before the apps are known, and ImproperlyConfigured for a wrong one.
    """
    return tuple(made for config in apps.get_app_configs() for made in _features_of(config))


def _features_of(config: AppConfig) -> list[Feature]:
    paths = getattr(config, "tenantqueue_features", ())
    where = f"{config.name}: tenantqueue_features={paths!r}"
    if not isinstance(paths, list | tuple):
        raise ImproperlyConfigured(f"{where} must be a tuple of dotted paths")
    made = [import_string(path)() for path in paths]
    if not all(isinstance(one, Feature) for one in made):
        raise ImproperlyConfigured(f"{where} must name classes that inherit from Feature")
    for kind in [one.settings for one in made if one.settings]:
        if not getattr(kind, "group", ""):
            raise ImproperlyConfigured(
                f"{kind.__module__}.{kind.__qualname__} needs a class variable `group`: the name "
                "of the dict in TENANTQUEUE that has its keys"
            )
    return made


def hooks(hook: Callable[Concatenate[Any, P], R]) -> Sequence[Callable[P, R]]:
    """Return this method of each feature that overrides it: `hooks(Feature.duties)`."""
    return _bound(hook)


def gathered(hook: Callable[Concatenate[Any, P], Iterable[R]], *args: Any, using: str) -> list[R]:
    """Return what this method of all features yields.

    An error is logged with the method's name, and the other features are still called. A failed
    statement does not undo those of the caller.
    """
    found: list[R] = []
    for ask in hooks(hook):
        try:
            with undone_alone(using):
                found += list(ask(*args))  # type: ignore[call-arg]
        except Exception:
            logger.exception("%s.%s failed", ask.__module__, ask.__qualname__)
    return found


def undone_alone(using: str) -> AbstractContextManager[Any]:
    """Return a context manager: inside a transaction, it is a savepoint for failed statements."""
    is_inside = connections[using].in_atomic_block
    return transaction.atomic(using=using) if is_inside else nullcontext()


@cache
def _bound(hook: Callable[..., Any]) -> Sequence[Callable[..., Any]]:
    name = hook.__name__
    return [getattr(one, name) for one in installed() if getattr(type(one), name) is not hook]


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "INSTALLED_APPS":
        installed.cache_clear()
        _bound.cache_clear()


setting_changed.connect(_forget)
