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
"""Placeholder for the message of an exception in STATUS_ERROR."""
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
    """Rules for the value of a setting beside its type. None passes all of them.

    Rules for numbers and names apply to each entry of a list.
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
    """Names of queues that get this executor when they are created. `*` matches any text."""
    options: Mapping[str, Any]
    """Options of the backend."""

    def has(self, queue: str) -> bool:
        """Whether queues of this name get this executor when they are created."""
        return any(fnmatchcase(queue, pattern) for pattern in self.new_queues)


@dataclass(frozen=True, slots=True)
class Settings:
    """The core's settings. Field names in capitals are the keys of TENANTQUEUE."""

    group: ClassVar[str] = ""
    """The dict inside TENANTQUEUE that has the keys; "" is TENANTQUEUE itself."""

    # Database and workers

    database: str = "default"
    """Alias of the database that holds the jobs.

    Jobs and the project's rows share a transaction."""
    notify: bool = True
    """Wake idle workers with LISTEN/NOTIFY. False: workers only poll.

    An idle worker starts a new job within milliseconds."""
    poll_interval: float = setting(1.0, above=0, most=3600)
    """Time between two polls of an idle worker.

    If a notification is lost, the job starts a second later."""
    pooler: bool = False
    """True if connections go through a transaction pooler such as PgBouncer. Disables LISTEN/NOTIFY
    and prepared statements.

    The check `tenantqueue.E009` detects a pooler."""
    reset_connections: bool = True
    """After each job, reset the database session of persistent connections (`CONN_MAX_AGE`).

    A search path that one job sets, for example, must not reach the job of another tenant."""

    # Queues and slots

    default_queue: str = setting("default", is_queue=True)
    """Queue of tasks that set no queue.

    Django uses this name for databases and caches."""
    strict_queues: bool = False
    """True: an unknown queue name is rejected. Known names are those of existing queues, of queues
    of tasks and executors, and names in settings such as `DECLARED_QUEUES`. False: the first use of
    any name creates the queue.

    New projects can try names."""
    declared_queues: tuple[str, ...] = setting((), is_queue=True)
    """Further known queues, for `STRICT_QUEUES`, routings and API tokens. A name may contain `*`.

    Most queues are declared by a task."""
    default_tenant_slots: int | None = setting(5, between=(0, 1_000_000))
    """Slots of a new queue of a tenant. Existing queues keep their slots.

    One tenant's backlog must not occupy all workers."""
    default_slots_without_tenant: int | None = setting(None, between=(0, 1_000_000))
    """Slots of a new queue without a tenant. Existing queues keep their slots.

    Without tenants, the number of workers is the limit."""
    default_user_slots: int = setting(2, between=(0, 1_000_000))
    """Maximum number of jobs of one `limit_user` that run at once. A user limit overrides this
    number.

    A user can start a second job during a long one."""
    admin_queue: str = setting("admin", is_queue=True)
    """Queue for the jobs of bulk actions, without a tenant. For a user who sees only some tenants,
    the queue belongs to one of these tenants. Its first use creates the queue, with one slot.

    Bulk actions do not wait behind the project's jobs."""
    priority_scope: str = "global"
    """The jobs among which a lower priority number starts first. "global": those of all tenants.
    "tenant": those of one queue.

    An urgent job of one tenant starts before the batch jobs of all tenants."""
    executors: Mapping[str, ExecutorEntry] = field(default_factory=dict)
    """External executors: a dict from the name of an executor to a dict with these keys. `BACKEND`:
    dotted path of an executor class. `NEW_QUEUES`: names of queues, with `*`, that use the executor
    from their creation on. Default: one queue with the name of the executor. `OPTIONS`: options of
    the backend.

    Workers run all jobs."""

    # Tenants

    tenant_resolver: str | None = setting(None, takes=0)
    """Dotted path of a callable that returns the current tenant outside of `use_tenant()`.

    Only the project knows its tenants."""
    visible_tenants: str | None = setting(None, takes=1)
    """Dotted path of a callable. It takes a user, and returns the tenants that the user may see in
    the admin. None: all.

    Django's permissions control access to the admin."""

    # Attempts and time limits

    default_max_attempts: int = setting(5, between=(1, 32767))
    """Maximum number of attempts of a job, including the first.

    With the default backoff, the attempts outlast a failure of about a minute."""
    backoff_base: float = setting(5.0, above=0, most=TEN_YEARS)
    """Time before the second attempt. It doubles with each further attempt.

    Most short failures are over by then."""
    backoff_max: float = setting(3600.0, above=0, most=TEN_YEARS)
    """Longest wait between two attempts.

    After a long failure, a job continues within an hour."""
    default_timeout: float | None = setting(None, above=0, most=TEN_YEARS)
    """Soft time limit of a run: TimeLimitExceeded interrupts the task.

    No number fits all tasks. `DEFAULT_HARD_TIMEOUT` ends runs that hang."""
    default_hard_timeout: float | None = setting(21_600.0, above=0, most=TEN_YEARS)
    """Hard time limit of a run without time limits of its own. The process of a longer run is
    killed.

    A run that hangs does not keep its slot overnight."""
    hard_timeout_grace: float | None = setting(30.0, above=0, most=TEN_YEARS)
    """Time from the interruption of a run until its process is killed. A soft time limit or a
    cancellation interrupts a run. None: never.

    A run has time to roll back and to close its files."""
    cancel_grace: float = setting(10.0, least=0, most=TEN_YEARS)
    """Time that a running job has to notice its cancellation before it is interrupted.

    A job that reports progress notices the cancellation sooner."""
    unknown_task_timeout: float | None = setting(86_400.0, above=0, most=TEN_YEARS)
    """Time for which workers retry a job whose task they do not have, or whose arguments do not fit
    the task. Then the job ends with the error UnknownTask. The time starts at the first attempt to
    run the job. None: forever.

    Workers with the new code can start on the next day."""

    # Calls and runs

    callables: tuple[str, ...] = ()
    """Dotted names of callables that `delayed()` and schedules may run besides tasks. An entry
    without `*` allows exactly this name. An entry with `*` allows an imported callable only if an
    entry also matches the name under which the callable is defined.

    A row in the database can only run listed callables."""
    context: tuple[str, ...] = (
        "django_tenantqueue.calls.context.Language",
        "django_tenantqueue.calls.context.TimeZone",
    )
    """Dotted paths of classes that carry a value from the enqueue into the run.

    A job runs in the language and time zone of the request that enqueued it."""
    wrappers: tuple[str, ...] = setting((), takes=1)
    """Dotted paths of context managers that wrap every run, outermost first. To wrap coroutines,
    all wrappers need the attribute `async_capable = True`.

    A run needs no wrapper."""
    eager: bool = False
    """Run jobs inside `.delay()`, for tests and notebooks. Nothing is stored.

    Workers run jobs."""
    max_argument_bytes: int = setting(1_000_000, above=0, most=100_000_000)
    """Maximum size of a job's arguments as JSON. Larger arguments are rejected at the call.

    Store larger data in your own table or file."""
    max_label_bytes: int = setting(10_000, above=0, most=1_000_000)
    """Maximum total size of a job's labels. Larger labels are rejected at the call.

    Labels are short texts to filter by."""
    masked_arguments: tuple[str, ...] = SECRETS
    """Names of arguments and keys whose values are masked wherever jobs are shown. Matching ignores
    case and treats hyphens as underscores.

    These names hold credentials in most projects."""

    # Results and errors

    result_store: str | None = None
    """Alias of the Django cache that stores results. None: the job's row stores them.

    The row is committed with the job's success, and is kept as long as the job."""
    result_ttl: float = setting(86400.0, above=0, most=TEN_YEARS)
    """Time for which the cache keeps a result.

    Celery has the same default."""
    max_result_bytes: int = setting(1_000_000, above=0, most=100_000_000)
    """Maximum size of a result, as JSON, in the job's row.

    The history stays small enough to back up."""
    large_result_store: str | None = None
    """Alias of the Django cache that stores results above `MAX_RESULT_BYTES`. None: such results
    are rejected.

    A cache may drop what it stores."""
    max_errors: int = setting(10, above=0, most=1000)
    """Maximum number of stored errors of a job. The newest ones are kept.

    Two rounds of `DEFAULT_MAX_ATTEMPTS` have this number of errors."""
    max_message_chars: int = setting(2_000, above=0, most=1_000_000)
    """Maximum length of a stored error message. Longer messages lose their middle.

    A screen shows about this number of characters."""
    max_traceback_chars: int = setting(20_000, above=0, most=1_000_000)
    """Maximum length of a stored traceback. Longer tracebacks lose their middle.

    A traceback of this length has about a hundred calls."""

    # History

    history_keep_months: int | None = setting(12, least=1, most=1200)
    """Months for which finished jobs are kept. None: forever. Retention rules override this
    setting for a tenant, a task or a state.

    Personal data is not kept forever, and the disk does not fill."""
    history_ahead_months: int = setting(3, least=1, most=120)
    """Months for which history partitions are created in advance.

    Workers may be off for a whole quarter."""
    changes_keep_days: int | None = setting(400, least=1, most=MOST_DAYS)
    """Days for which entries of the audit log and resolved alerts are kept. None: forever.

    This is a year and a month."""
    figures: bool = True
    """Workers store metrics for each minute, which the dashboard shows.

    These metrics cost about two microseconds a job."""

    # Status pages

    status_max_age: float = setting(7 * 86400.0, above=0, most=TEN_YEARS)
    """Time for which a signed status URL is valid.

    A link in an e-mail opens for a week."""
    status_salt: str = ""
    """Salt of the signature of status URLs. A new salt makes all earlier links invalid.

    `SECRET_KEY` alone is enough to sign them."""
    status_error: str = gettext_noop("Something went wrong.")
    """The error text in the status of a failed job. `{message}` inserts the message of the job's
    exception. Translations of your own text come from your project's catalogue.

    Exception messages may contain private data, and the link needs no login."""

    def executor_of(self, queue: str) -> str | None:
        """Return the executor of new queues of this name; None: the workers."""
        return next((one.name for one in self.executors.values() if one.has(queue)), None)

    def slots_of(self, tenant: str) -> int | None:
        """Return the slots of a new queue of this tenant; None: no limit."""
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
