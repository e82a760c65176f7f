"""Every setting of the core, with its default, its meaning and the rules for its value.

An app has those of its own in a dataclass like Settings (see Feature.settings). conf.py reads and
checks a project's values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from django.utils.translation import gettext_noop

from .exceptions import InvalidOption
from .text import is_storable

TEN_YEARS = 10 * 365 * 86400
"""The longest duration (seconds) of a setting, and the longest wait between two attempts."""
MOST_DAYS = 36_500
"""The longest time for which something is kept, or a token is valid."""
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
    is_added: bool = False
    """Its entries are added to the default, so that a project cannot lose it by mistake."""

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
    queues: tuple[str, ...]
    """Names of the queues that are made with this executor. `*` stands for any text."""
    options: Mapping[str, Any]
    """The backend's own."""

    def has(self, queue: str) -> bool:
        """Whether queues of this name are made with this executor."""
        return any(fnmatchcase(queue, pattern) for pattern in self.queues)


@dataclass(frozen=True, slots=True)
class Settings:
    """The core's settings. Field names in capitals are the keys of TENANTQUEUE."""

    database: str = "default"
    """Alias of the database that holds the jobs."""
    default_queue: str = setting("default", is_queue=True)
    """Queue of a task that names none."""
    admin_queue: str = setting("admin", is_queue=True)
    """Queue, of no tenant, of the jobs that act on all jobs that match a filter. It is made at its
    first use, with one slot; tune it like another."""
    strict_queues: bool = False
    """A tenant's queue is made at its first use only if a task, `DEFAULT_QUEUE` or `QUEUES` names
    it. Another name is an error, unless an operator has made that queue."""
    queues: tuple[str, ...] = setting((), is_queue=True)
    """Names of queues that no task names, for `STRICT_QUEUES`, routings and API tokens. `*` stands
    for any text."""
    default_num_slots: int | None = setting(5, between=(0, 1_000_000))
    """Slots of a tenant queue at its first use; None is no limit."""
    default_user_slots: int = setting(2, between=(0, 1_000_000))
    """Jobs of one `using(user=…)` that run at once, where no row says otherwise."""
    default_max_attempts: int = setting(5, between=(1, 32767))
    """How often a job is started at most, the first start included."""
    default_timeout: float | None = setting(None, above=0, most=TEN_YEARS)
    """Seconds after which a run is told to stop; None is no limit."""
    default_hard_timeout: float | None = setting(21_600.0, above=0, most=TEN_YEARS)
    """Seconds (6 hours) after which the process of a run without limits is killed; None: never."""
    hard_timeout_grace: float | None = setting(30.0, above=0, most=TEN_YEARS)
    """Seconds after it was told to stop until the process of a run is killed; None: never."""
    backoff_base: float = setting(5.0, above=0, most=TEN_YEARS)
    """Seconds before the second attempt; it doubles with each further one."""
    backoff_max: float = setting(3600.0, above=0, most=TEN_YEARS)
    """Longest wait between two attempts, in seconds."""
    priority_scope: str = "global"
    """"global": lower numbers first over all tenants. "tenant": only among a queue's own jobs."""
    tenant_resolver: str | None = setting(None, takes=0)
    """Dotted path of a callable that returns the current tenant when no context is set."""
    visible_tenants: str | None = setting(None, takes=1)
    """Dotted path of a callable: user -> tenants that the user may see in the admin; None: all."""
    callables: tuple[str, ...] = ()
    """Dotted names that delayed() and schedules may run besides tasks; "*" stands for any text.

    A pattern with "*" does not allow what a module has imported: the name under which the callable
    is defined must match an entry, too. A name without "*" allows exactly that one, wherever it is
    defined.
    """
    result_store: str = "db"
    """"db", or the alias of a Django cache."""
    result_ttl: float = setting(86400.0, above=0, most=TEN_YEARS)
    """Seconds that a result stays in the cache."""
    max_result_bytes: int = setting(1_000_000, above=0, most=100_000_000)
    """Largest result (as JSON) kept in the job's row."""
    large_results: str = "error"
    """What becomes of a larger one: "error", or the alias of a Django cache."""
    max_argument_bytes: int = setting(1_000_000, above=0, most=100_000_000)
    """Largest arguments (as JSON) of a job; larger ones are an error at the call."""
    max_label_bytes: int = setting(10_000, above=0, most=1_000_000)
    """Bytes of all labels of a job together; longer ones are an error at the call."""
    max_message_chars: int = setting(2_000, above=0, most=1_000_000)
    """Characters of an error's message that are kept. The middle of a longer one is left out."""
    max_traceback_chars: int = setting(20_000, above=0, most=1_000_000)
    """Characters of an error's traceback that are kept. The middle of a longer one is left out."""
    max_errors: int = setting(10, above=0, most=1000)
    """How many errors a job keeps, the newest."""
    wrappers: tuple[str, ...] = setting((), takes=1)
    """Dotted paths of context managers put around every run, outermost first. Only one with the
    attribute `async_capable = True` may be put around coroutines."""
    context: tuple[str, ...] = setting(
        (
            "django_tenantqueue.calls.context.Language",
            "django_tenantqueue.calls.context.TimeZone",
        ),
        is_added=True,
    )
    """Dotted paths of classes that carry a value from the enqueue into the run. They are
    added to these two. `"!path"` leaves out one of them, and `"!*"` leaves out both."""
    eager: bool = False
    """Run jobs inside .delay(), for tests and notebooks; nothing is stored."""
    poll_interval: float = setting(1.0, above=0, most=3600)
    """Seconds between two looks of an idle worker that was not woken."""
    notify: bool = True
    """Wake idle workers by NOTIFY; False is polling alone."""
    pooler: bool = False
    """A transaction pooler (pgbouncer) stands before the server: no LISTEN, nothing prepared."""
    reset_connections: bool = True
    """Reset the session of a connection that Django keeps (CONN_MAX_AGE) after each job."""
    cancel_grace: float = setting(10.0, least=0, most=TEN_YEARS)
    """Seconds a running job has to notice that it was cancelled, before it is told to stop."""
    history_ahead: int = setting(3, least=1, most=120)
    """Months of history partitions made in advance."""
    history_keep: int | None = setting(None, least=1, most=1200)
    """Months of history to keep; None keeps all. Rules of retention say otherwise for the jobs of a
    tenant, a task or a state."""
    figures: bool = True
    """Workers keep minute figures, which the admin's first page shows."""
    changes_keep: int | None = setting(400, least=1, most=MOST_DAYS)
    """Days for which the list of changes, and that of resolved alerts, keep entries; None: all."""
    status_max_age: float = setting(7 * 86400.0, above=0, most=TEN_YEARS)
    """Seconds for which a signed status URL is valid."""
    status_salt: str = ""
    """Part of the signature of status URLs. Another value makes all earlier links invalid."""
    status_error: str = gettext_noop("Something went wrong.")
    """The text for the error in the status of a failed job. Your own text is translated by your own
    catalogue. "message": the message of the job's exception."""
    executors: Mapping[str, ExecutorEntry] = field(default_factory=dict)
    """Other places than workers where jobs run: name -> `BACKEND` (dotted path of an executor),
    `QUEUES` (queues that are made with it, with `*` for any text; default: the one of its name) and
    `OPTIONS`, the backend's own."""
    masked_arguments: tuple[str, ...] = setting(SECRETS, is_added=True)
    """Names of arguments and keys whose values are masked wherever jobs are shown. `*` stands for
    any text. Matching ignores case and treats hyphens as underscores. The entries are added to the
    default. `"!name"` leaves out one of the default, and `"!*"` leaves out all of it."""

    def executor_of(self, queue: str) -> str | None:
        """Return the executor with which queues of this name are made; None: the workers."""
        return next((one.name for one in self.executors.values() if one.has(queue)), None)

    def check(self) -> None:
        """Raise InvalidOption for what breaks none of the Rules, but is wrong."""
        if self.priority_scope not in ("global", "tenant"):
            raise InvalidOption(
                f"TENANTQUEUE['PRIORITY_SCOPE'] is {self.priority_scope!r}: "
                "it must be 'global' or 'tenant'"
            )
        if not self.status_error.strip() or not is_storable(self.status_error):
            raise InvalidOption(
                f"TENANTQUEUE['STATUS_ERROR'] is {self.status_error!r}: it must be 'message' or a "
                "text"
            )
        for pattern in self.masked_arguments:
            if not pattern.strip(" *") or pattern != pattern.strip():
                raise InvalidOption(
                    f"TENANTQUEUE['MASKED_ARGUMENTS'] has {pattern!r}: give names of arguments, or "
                    "parts of them with *, without spaces around them"
                )
