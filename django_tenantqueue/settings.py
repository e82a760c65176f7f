"""Every setting of the core, with its default, its meaning and the rules for its value.

An app has those of its own in a dataclass like Settings (see Feature.settings). conf.py reads and
checks a project's values.

A field of type float is a duration: the project gives seconds or a timedelta. The name of a number
of months, days or bytes says so. Entries of a list are added to its default. The text below a field
says what it does and, after an empty line, why it has this default. The reference is made of these
texts. A comment between fields is the title of a table there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from django.utils.translation import gettext_noop

from .exceptions import InvalidOption
from .text import is_storable

TEN_YEARS = 10 * 365 * 86400
"""The longest duration (seconds) of a setting, and the longest wait between two attempts."""
MOST_DAYS = 36_500
"""The longest time for which something is kept, or a token is valid."""
MESSAGE = "{message}"
"""What stands for the message of an exception in STATUS_ERROR."""
SECRETS = (
    "*password*",
    "*passwd*",
    "*passphrase*",
    "*secret*",
    "*token",
    "*api_key",
    "*apikey",
    "*private_key",
    "authorization",
    "cookie",
)
"""Names that hold credentials in most projects. A counter such as `max_tokens` is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds of the value of a setting beside its type. None obeys all of them.

    Those for numbers and names hold of each entry of a list.
    """

    above: float | None = None
    least: float | None = None
    most: float | None = None
    between: tuple[int, int] | None = None
    """The least and the most."""
    is_queue: bool = False
    """It is the name of a queue."""
    takes: int | None = None
    """It is the dotted path of a callable that takes this number of arguments. A system check
    imports it."""

    def wanted(self, value: Any) -> str:
        """Return what `value` must be; "" if it is."""
        if self.most is not None and value > self.most:
            return f"at most {self.most}"
        if self.above is not None and not value > self.above:
            return f"above {self.above}"
        if self.least is not None and not value >= self.least:
            return f"{self.least} or more"
        if self.between and not self.between[0] <= value <= self.between[1]:
            return "from {} to {}".format(*self.between)
        if self.is_queue and (not 1 <= len(value) <= 100 or not is_storable(value)):
            return "from 1 to 100 characters long, without NUL characters and lone surrogates"
        return ""


def setting(default: Any, **rules: Any) -> Any:
    """Return a field with this default and these Rules."""
    return field(default=default, metadata={"rules": Rules(**rules)})


@dataclass(frozen=True, slots=True)
class ExecutorEntry:
    """One entry of EXECUTORS."""

    name: str
    backend: str
    """Dotted path of a subclass of RemoteExecutor."""
    new_queues: tuple[str, ...]
    """Names of the queues that are made with this executor. `*` stands for any text."""
    options: Mapping[str, Any]
    """The backend's own."""

    def has(self, queue: str) -> bool:
        """Whether queues of this name are made with this executor."""
        return any(fnmatchcase(queue, pattern) for pattern in self.new_queues)


@dataclass(frozen=True, slots=True)
class Settings:
    """The core's settings. Field names in capitals are the keys of TENANTQUEUE."""

    group: ClassVar[str] = ""
    """The dict inside TENANTQUEUE that has the keys; "" is TENANTQUEUE itself."""

    # Database and workers

    database: str = "default"
    """Alias of the database that holds the jobs.

    A job is then stored in the transaction of the project's own rows."""
    notify: bool = True
    """Idle workers are woken by NOTIFY. False is polling alone.

    An idle worker starts a new job within milliseconds."""
    poll_interval: float = setting(1.0, above=0, most=3600)
    """Time between two looks of an idle worker that was not woken.

    A look is one short statement, and a job whose notification was lost starts a second later."""
    pooler: bool = False
    """A transaction pooler such as PgBouncer stands before the server. Workers then do not use
    LISTEN, and nothing is prepared.

    Most projects connect directly. The check `tenantqueue.E009` finds a pooler."""
    reset_connections: bool = True
    """Reset the session of a connection that Django keeps (`CONN_MAX_AGE`) after each job.

    What a job has set on its connection, such as a search path, must not reach another tenant's
    job."""

    # Queues and slots

    default_queue: str = setting("default", is_queue=True)
    """Queue of a task that names none.

    Django has the same name for the first database and the first cache."""
    strict_queues: bool = False
    """A tenant's queue is made at its first use only if a task, `DEFAULT_QUEUE` or
    `DECLARED_QUEUES` names it. Another name is an error, unless an operator has made that queue.

    A new project can try names without declaring them."""
    declared_queues: tuple[str, ...] = setting((), is_queue=True)
    """Names of queues that no task names, for `STRICT_QUEUES`, routings and API tokens. `*` stands
    for any text.

    Most queues are named by a task."""
    default_tenant_slots: int | None = setting(5, between=(0, 1_000_000))
    """Slots of a tenant's queue at its first use. None is no limit.

    One tenant's backlog must not occupy all workers. Five jobs at once are enough for most
    tenants."""
    default_slots_without_tenant: int | None = setting(None, between=(0, 1_000_000))
    """Slots of a queue of no tenant at its first use. None is no limit.

    In a project without tenants the number of workers is the limit, as in other job queues."""
    default_user_slots: int = setting(2, between=(0, 1_000_000))
    """Jobs of one `using(limit_user=…)` that run at once, where no row says otherwise.

    A user can start a second job during a long one, and leaves slots to the others of the
    tenant."""
    admin_queue: str = setting("admin", is_queue=True)
    """Queue, of no tenant, of the jobs that act on all jobs that match a filter. It is made at its
    first use, with one slot; tune it like another.

    These jobs wait behind none of the project's own."""
    priority_scope: str = "global"
    """"global": lower numbers first over all tenants. "tenant": only among a queue's own jobs.

    A job of an administrator starts before the batch jobs of all tenants."""
    executors: Mapping[str, ExecutorEntry] = field(default_factory=dict)
    """Other places than workers where jobs run: name → a dict with `BACKEND` (dotted path of an
    executor), `NEW_QUEUES` (names of queues that are made with it, with `*` for any text; default:
    the one of its name) and `OPTIONS`, the backend's own.

    Workers run everything without another system."""

    # Tenants

    tenant_resolver: str | None = setting(None, takes=0)
    """Dotted path of a callable that returns the current tenant when no context is set.

    Only the project knows its tenants."""
    visible_tenants: str | None = setting(None, takes=1)
    """Dotted path of a callable: user → tenants that the user may see in the admin. None: all.

    Django's permissions decide who sees the admin at all."""

    # Attempts and time limits

    default_max_attempts: int = setting(5, between=(1, 32767))
    """How often a job is started at most, the first start included.

    With the default waits, the attempts outlast a failure of about a minute, such as the restart of
    a service."""
    backoff_base: float = setting(5.0, above=0, most=TEN_YEARS)
    """Time before the second attempt. It doubles with each further one.

    Most short failures are over by then, and a user who waits for the job still has it soon."""
    backoff_max: float = setting(3600.0, above=0, most=TEN_YEARS)
    """Longest wait between two attempts.

    A job with many attempts is tried every hour, so it continues soon after a long failure."""
    default_timeout: float | None = setting(None, above=0, most=TEN_YEARS)
    """Time after which a run is told to stop. None is no limit.

    No number is right for all tasks. `DEFAULT_HARD_TIMEOUT` ends runs that hang."""
    default_hard_timeout: float | None = setting(21_600.0, above=0, most=TEN_YEARS)
    """Time after which the process of a run without limits is killed. None: never.

    It is longer than most jobs, and a run that hangs does not keep its slot overnight."""
    hard_timeout_grace: float | None = setting(30.0, above=0, most=TEN_YEARS)
    """Time from the moment a run is told to stop until its process is killed. None: never.

    A run can roll back and close its files. Kubernetes gives the same time to a container."""
    cancel_grace: float = setting(10.0, least=0, most=TEN_YEARS)
    """Time that a running job has to notice that it was cancelled, before it is told to stop.

    A job that reports progress notices it in less, and the operator is still looking."""

    # Calls and runs

    callables: tuple[str, ...] = ()
    """Dotted names that `delayed()` and schedules may run besides tasks. `*` stands for any text. A
    pattern with `*` does not allow what a module has imported: the name under which the callable is
    defined must match an entry, too. A name without `*` allows exactly that one, wherever it is
    defined.

    What is not listed cannot be run by a row of the database."""
    context: tuple[str, ...] = (
        "django_tenantqueue.calls.context.Language",
        "django_tenantqueue.calls.context.TimeZone",
    )
    """Dotted paths of classes that carry a value from the enqueue into the run.

    A job writes in the language and the time zone of the request that caused it."""
    wrappers: tuple[str, ...] = setting((), takes=1)
    """Dotted paths of context managers put around every run, outermost first. Only one with the
    attribute `async_capable = True` may be put around coroutines.

    A run needs none."""
    eager: bool = False
    """Run jobs inside `.delay()`, for tests and notebooks. Nothing is stored.

    Jobs are for workers."""
    max_argument_bytes: int = setting(1_000_000, above=0, most=100_000_000)
    """Largest arguments (as JSON) of a job. Larger ones are an error at the call.

    It is far above what a call needs. Larger data belongs in a table or a file of your own."""
    max_label_bytes: int = setting(10_000, above=0, most=1_000_000)
    """Bytes of all labels of a job together. Longer ones are an error at the call.

    Labels are short texts to filter by."""
    masked_arguments: tuple[str, ...] = SECRETS
    """Names of arguments and keys whose values are masked wherever jobs are shown. `*` stands for
    any text. Matching ignores case and treats hyphens as underscores.

    These names hold credentials in most projects."""

    # Results and errors

    result_store: str | None = None
    """Alias of the Django cache that stores results. None: the job's row.

    The row is committed together with the job's success, and is kept as long."""
    result_ttl: float = setting(86400.0, above=0, most=TEN_YEARS)
    """Time that a result stays in a cache.

    Celery keeps results for a day, too."""
    max_result_bytes: int = setting(1_000_000, above=0, most=100_000_000)
    """Largest result (as JSON) kept in the job's row.

    The history stays small enough to read and to back up."""
    large_result_store: str | None = None
    """Alias of the Django cache that stores a larger one. None: a larger one is an error.

    A cache may drop what it stores, so only the project can say that this is right."""
    max_errors: int = setting(10, above=0, most=1000)
    """How many errors a job keeps, the newest.

    That is all of two rounds of `DEFAULT_MAX_ATTEMPTS`."""
    max_message_chars: int = setting(2_000, above=0, most=1_000_000)
    """Characters of an error's message that are kept. The middle of a longer one is left out.

    A screen shows about as much."""
    max_traceback_chars: int = setting(20_000, above=0, most=1_000_000)
    """Characters of an error's traceback that are kept. The middle of a longer one is left out.

    That is about a hundred calls."""

    # History

    history_keep_months: int | None = setting(12, least=1, most=1200)
    """Months for which ended jobs are kept. None: all are kept. Retention rules say otherwise for
    the jobs of a tenant, a task or a state.

    A year shows what a customer or an operator asks for. Arguments and results, which may be
    personal data, are not kept for ever, and the disk does not fill."""
    history_ahead_months: int = setting(3, least=1, most=120)
    """Months whose history partitions are made in advance.

    Workers may be off for a whole quarter."""
    changes_keep_days: int | None = setting(400, least=1, most=MOST_DAYS)
    """Days for which the list of changes, and that of resolved alerts, keep entries. None: all.

    That is a year, and a month to look back at it."""
    figures: bool = True
    """Workers keep minute figures, which the admin's first page shows.

    Counting costs a worker about two microseconds a job."""

    # Status pages

    status_max_age: float = setting(7 * 86400.0, above=0, most=TEN_YEARS)
    """Time for which a signed status URL is valid.

    A link in a mail still opens after a week."""
    status_salt: str = ""
    """Part of the signature of status URLs. Another value makes all earlier links invalid.

    `SECRET_KEY` signs them. The salt is for the day on which links must end."""
    status_error: str = gettext_noop("Something went wrong.")
    """The text for the error in the status of a failed job. `{message}` in it is the message of the
    job's exception. Your own text is translated by your own catalogue.

    Messages of exceptions may name rows, hosts or paths, and the link needs no login."""

    def executor_of(self, queue: str) -> str | None:
        """Return the executor with which queues of this name are made; None: the workers."""
        return next((one.name for one in self.executors.values() if one.has(queue)), None)

    def slots_of(self, tenant: str) -> int | None:
        """Return the slots with which a queue of this tenant is made; None: no limit."""
        return self.default_tenant_slots if tenant else self.default_slots_without_tenant

    def check(self) -> None:
        """Raise InvalidOption for what breaks none of the Rules, but is wrong."""
        if self.priority_scope not in ("global", "tenant"):
            raise InvalidOption(
                f"TENANTQUEUE['PRIORITY_SCOPE'] is {self.priority_scope!r}: "
                "it must be 'global' or 'tenant'"
            )
        text = self.status_error
        if not text.strip() or not is_storable(text) or "{" in text.replace(MESSAGE, ""):
            raise InvalidOption(
                f"TENANTQUEUE['STATUS_ERROR'] is {text!r}: it must be a text. It may have "
                f"'{MESSAGE}' in it for the message of the exception, and no other '{{'"
            )
        for pattern in self.masked_arguments:
            if not pattern.strip(" *") or pattern != pattern.strip():
                raise InvalidOption(
                    f"TENANTQUEUE['MASKED_ARGUMENTS'] has {pattern!r}: give names of arguments, or "
                    "parts of them with *, without spaces around them"
                )
