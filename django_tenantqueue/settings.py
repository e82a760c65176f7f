"""Every setting, with its default and its meaning. conf.py reads and checks a project's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from django.utils.translation import gettext_noop

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
    """All settings with their defaults. Field names in capitals are the keys of TENANTQUEUE."""

    database: str = "default"
    """Alias of the database that holds the jobs."""
    default_queue: str = "default"
    """Queue of a task that names none."""
    admin_queue: str = "admin"
    """Queue, of no tenant, of the jobs that act on all jobs that match a filter. It is made at its
    first use, with one slot; tune it like another."""
    alert_queue: str = "alerts"
    """Queue of the jobs that deliver the messages of alerts: of the tenant of the rule, or of no
    tenant. It is made at its first use, with five slots; tune it like another."""
    alert_interval: float = 10.0
    """Seconds between two checks of an alert rule."""
    strict_queues: bool = False
    """A tenant's queue is made at its first use only if a task, `DEFAULT_QUEUE` or `QUEUES` names
    it. Another name is an error, unless an operator has made that queue."""
    queues: tuple[str, ...] = ()
    """Names of queues that no task names, for `STRICT_QUEUES`, routings and API tokens. `*` stands
    for any text."""
    default_num_slots: int | None = 5
    """Slots of a tenant queue at its first use; None is no limit."""
    default_user_slots: int = 2
    """Jobs of one `using(user=…)` that run at once, where no row says otherwise."""
    default_max_attempts: int = 5
    """How often a job is started at most, the first start included."""
    default_timeout: float | None = None
    """Seconds after which a run is told to stop; None is no limit."""
    default_hard_timeout: float | None = 21_600.0
    """Seconds (6 hours) after which the process of a run without limits is killed; None: never."""
    hard_timeout_grace: float | None = 30.0
    """Seconds after it was told to stop until the process of a run is killed; None: never."""
    backoff_base: float = 5.0
    """Seconds before the second attempt; it doubles with each further one."""
    backoff_max: float = 3600.0
    """Longest wait between two attempts, in seconds."""
    priority_scope: str = "global"
    """"global": lower numbers first over all tenants. "tenant": only among a queue's own jobs."""
    tenant_resolver: str | None = None
    """Dotted path of a callable that returns the current tenant when no context is set."""
    visible_tenants: str | None = None
    """Dotted path of a callable: user -> tenants that the user may see in the admin; None: all."""
    callables: tuple[str, ...] = ()
    """Dotted names that delay() and schedules may run besides tasks; "*" stands for any characters.

    A pattern with "*" does not allow what a module has imported: the name under which the callable
    is defined must match an entry, too. A name without "*" allows exactly that one, wherever it is
    defined.
    """
    result_store: str = "db"
    """"db", or the alias of a Django cache."""
    result_ttl: float = 86400.0
    """Seconds that a result stays in the cache."""
    max_result_bytes: int = 1_000_000
    """Largest result (as JSON) kept in the job's row."""
    large_results: str = "error"
    """What becomes of a larger one: "error", or the alias of a Django cache."""
    max_argument_bytes: int = 1_000_000
    """Largest arguments (as JSON) of a job; larger ones are an error at the call."""
    max_label_bytes: int = 10_000
    """Bytes of all labels of a job together; longer ones are an error at the call."""
    max_message_chars: int = 2_000
    """Characters of an error's message that are kept. The middle of a longer one is left out."""
    max_traceback_chars: int = 20_000
    """Characters of an error's traceback that are kept. The middle of a longer one is left out."""
    max_errors: int = 10
    """How many errors a job keeps, the newest."""
    wrappers: tuple[str, ...] = ()
    """Dotted paths of context managers put around every run, outermost first. Only one with the
    attribute `async_capable = True` may be put around coroutines."""
    context: tuple[str, ...] = (
        "django_tenantqueue.calls.context.Language",
        "django_tenantqueue.calls.context.TimeZone",
    )
    """Dotted paths of classes that carry a value from the enqueue into the run. They are
    added to these two. `"!path"` leaves out one of them, and `"!*"` leaves out both."""
    eager: bool = False
    """Run jobs inside .delay(), for tests and notebooks; nothing is stored."""
    poll_interval: float = 1.0
    """Seconds between two looks of an idle worker that was not woken."""
    notify: bool = True
    """Wake idle workers by NOTIFY; False is polling alone."""
    pooler: bool = False
    """A transaction pooler (pgbouncer) stands before the server: no LISTEN, nothing prepared."""
    reset_connections: bool = True
    """Reset the session of a connection that Django keeps (CONN_MAX_AGE) after each job."""
    cancel_grace: float = 10.0
    """Seconds a running job has to notice that it was cancelled, before it is told to stop."""
    history_ahead: int = 3
    """Months of history partitions made in advance."""
    history_keep: int | None = None
    """Months of history to keep; None keeps all. Rules of retention say otherwise for the jobs of a
    tenant, a task or a state."""
    figures: bool = True
    """Workers keep minute figures, which the admin's first page shows."""
    metrics_token: str | None = None
    """Token that scrapes of the metrics must send (`Authorization: Bearer …`). None: the page of
    the metrics is off, and a worker's `--metrics-port` asks for none."""
    metrics_open: bool = False
    """The page of the metrics answers without a token, too, when METRICS_TOKEN is None."""
    changes_keep: int | None = 400
    """Days for which the list of changes, and that of resolved alerts, keep entries; None: all."""
    api_tasks: tuple[str, ...] = ()
    """Names of the tasks that the HTTP API may enqueue. `*` stands for any text. It matches no task
    of django_tenantqueue itself. HTTP jobs need the scope "http" of a token instead."""
    api_requests_per_minute: int | None = 6000
    """Requests that each API token may make in a minute, where its row says nothing else; None: no
    limit. They are counted in the Django cache "default"."""
    api_queues_per_day: int | None = 100
    """New queues of one tenant that clients of the HTTP API and the Fireworq API may make in 24
    hours. Those that code or operators have made count as well. None: no limit."""
    api_waits_per_token: int | None = None
    """Requests of one token that may wait for jobs at once in each process of the site. None: 100
    under ASGI; 2 under WSGI, where each of them keeps a thread of the server."""
    status_max_age: float = 7 * 86400.0
    """Seconds for which a signed status URL is valid."""
    status_salt: str = ""
    """Part of the signature of status URLs. Another value makes all earlier links invalid."""
    status_error: str = gettext_noop("Something went wrong.")
    """The text for the error in the status of a failed job. Your own text is translated by your own
    catalogue. "message": the message of the job's exception."""
    http_allowed_hosts: tuple[str, ...] = ("*",)
    """Hosts that HTTP jobs and webhooks of alerts may call. `*` stands for any text. An address
    that is not public (loopback, private, link-local, metadata) is refused unless an entry names
    it, or a network that has it, such as "10.1.0.0/16"."""
    http_tenant_hosts: str | None = None
    """Dotted path of a callable: tenant -> the list in place of `HTTP_ALLOWED_HOSTS`; None: no
    other. Workers keep an answer for 60 seconds."""
    http_secrets: str | None = None
    """Dotted path of a callable: tenant -> list of secrets that sign its HTTP jobs, in the form
    "whsec_…" of Standard Webhooks. All of them sign. Workers keep an answer for 60 seconds."""
    http_timeout: float = 30.0
    """Seconds that a request of an HTTP job takes at most, unless the job has a timeout of its own.
    """
    http_connect_timeout: float = 10.0
    """Seconds until a connection must be made, with the look-up of its name and with TLS."""
    http_redirects: int = 0
    """Redirects (307 and 308) that a request follows at most. Each is checked like the first URL.
    """
    http_permanent_statuses: tuple[int, ...] = (410,)
    """HTTP statuses after which a job is not retried, by the rule "status"."""
    http_max_body: int = 65_536
    """Bytes of an answer's body that are read and kept."""
    http_breaker_failures: int | None = 10
    """Failures in a row after which a worker process tries an endpoint with one job at a time.
    None: never."""
    fireworq_tenant: str | None = None
    """Tenant for which the Fireworq API answers requests without a token. Whoever reaches it then
    may do everything there: set it only in a network whose every program may. None: a token is
    needed."""
    executors: Mapping[str, ExecutorEntry] = field(default_factory=dict)
    """Other places than workers where jobs run: name -> `BACKEND` (dotted path of an executor),
    `QUEUES` (queues that are made with it, with `*` for any text; default: the one of its name) and
    `OPTIONS`, the backend's own."""
    masked_arguments: tuple[str, ...] = SECRETS
    """Names of arguments and keys whose values are masked wherever jobs are shown. `*` stands for
    any text. Matching ignores case and treats hyphens as underscores. The entries are added to the
    default. `"!name"` leaves out one of the default, and `"!*"` leaves out all of it."""

    def executor_of(self, queue: str) -> str | None:
        """Return the executor with which queues of this name are made; None: the workers."""
        return next((one.name for one in self.executors.values() if one.has(queue)), None)
