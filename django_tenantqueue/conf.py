"""Settings: the dict `TENANTQUEUE`, read lazily into one frozen dataclass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, get_args, get_origin, get_type_hints

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from .exceptions import InvalidOption
from .text import is_storable

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
    """Names of queues that no task names, for `STRICT_QUEUES`. `*` stands for any text."""
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
    """Dotted names (or prefixes ending in ".*") that delay() may run besides tasks."""
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
    """Dotted paths of context managers put around every run, outermost first."""
    context: tuple[str, ...] = (
        "django_tenantqueue.calls.context.Language",
        "django_tenantqueue.calls.context.TimeZone",
    )
    """Dotted paths of classes that carry a value from the enqueue into the run."""
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
    status_max_age: float = 7 * 86400.0
    """Seconds for which a signed status URL is valid."""
    status_error: str = "message"
    """What the status of a failed job says: "message" is the message of its exception. Another text
    stands in place of all messages, translated by your own catalogue."""
    http_allowed_hosts: tuple[str, ...] = ("*",)
    """Hosts that HTTP jobs may call. `*` stands for any text. An address that is not public
    (loopback, private, link-local, metadata) is refused unless an entry names it, or a network that
    has it, such as "10.1.0.0/16"."""
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
    any text. Upper case and hyphens do not count."""

    def executor_of(self, queue: str) -> str | None:
        """Return the executor with which queues of this name are made; None: the workers."""
        return next((one.name for one in self.executors.values() if one.has(queue)), None)


_cache: dict[str, Settings] = {}


_ENTRY_KEYS = ("BACKEND", "QUEUES", "OPTIONS")


def _read_executors(value: Any) -> dict[str, ExecutorEntry]:
    if not isinstance(value, Mapping):
        raise InvalidOption(f"TENANTQUEUE['EXECUTORS'] is {value!r}: it must be a dict")
    return {name: _read_executor(name, entry) for name, entry in value.items()}


def _read_executor(name: Any, entry: Any) -> ExecutorEntry:
    where = f"TENANTQUEUE['EXECUTORS'][{name!r}]"
    if not isinstance(name, str) or not 1 <= len(name) <= 100 or not is_storable(name):
        raise InvalidOption(f"{where}: its name must be a str of 1 to 100 characters")
    if not isinstance(entry, Mapping) or not isinstance(entry.get("BACKEND"), str):
        raise InvalidOption(
            f"{where} is {entry!r}: it must be a dict with 'BACKEND', the dotted path of an "
            "executor such as 'django_tenantqueue.contrib.celery.CeleryExecutor'"
        )
    if unknown := [key for key in entry if key not in _ENTRY_KEYS]:
        raise InvalidOption(f"{where} has {unknown[0]!r}: known are {', '.join(_ENTRY_KEYS)}")
    queues, options = entry.get("QUEUES", [name]), entry.get("OPTIONS", {})
    if (
        not isinstance(queues, list | tuple)
        or not queues
        or not all(isinstance(q, str) and 1 <= len(q) <= 100 for q in queues)
    ):
        raise InvalidOption(
            f"{where}['QUEUES'] is {queues!r}: it must be a list of names of queues"
        )
    if not isinstance(options, Mapping):
        raise InvalidOption(f"{where}['OPTIONS'] is {options!r}: it must be a dict")
    return ExecutorEntry(name, entry["BACKEND"], tuple(queues), dict(options))


def _checked(name: str, value: Any, hint: Any) -> Any:
    if name == "executors":
        return _read_executors(value)
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        # a str is a sequence of str, too: read as one, "reports.*" would allow everything
        if isinstance(value, list | tuple) and all(isinstance(entry, kind) for entry in value):
            return tuple(value)
        raise InvalidOption(
            f"TENANTQUEUE[{name.upper()!r}] is {value!r}: it must be a list of {kind.__name__}"
        )
    allowed = get_args(hint) or (hint,)
    if isinstance(value, bool):
        if bool in allowed:
            return value
    elif isinstance(value, timedelta) and float in allowed:
        return value.total_seconds()
    elif isinstance(value, int) and float in allowed and int not in allowed:
        return float(value)
    elif any(isinstance(kind, type) and isinstance(value, kind) for kind in allowed):
        return value
    wanted = getattr(hint, "__name__", None) if isinstance(hint, type) else str(hint)
    raise InvalidOption(f"TENANTQUEUE[{name.upper()!r}] is {value!r}: it must be {wanted}")


def read_settings(raw: Mapping[str, Any]) -> Settings:
    """Return Settings made of `raw`; raise InvalidOption naming the first entry that is wrong."""
    hints = get_type_hints(Settings)
    known = {field.name.upper(): field.name for field in fields(Settings)}
    chosen: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise InvalidOption(f"TENANTQUEUE[{key!r}] is not a setting{hint}")
        chosen[known[key]] = _checked(known[key], value, hints[known[key]])
    made = Settings(**chosen)
    _check_values(made)
    return made


_POSITIVE = (
    "alert_interval",
    "api_requests_per_minute",
    "backoff_base",
    "backoff_max",
    "default_hard_timeout",
    "default_timeout",
    "hard_timeout_grace",
    "http_breaker_failures",
    "http_connect_timeout",
    "http_max_body",
    "http_timeout",
    "max_argument_bytes",
    "max_errors",
    "max_label_bytes",
    "max_message_chars",
    "max_result_bytes",
    "max_traceback_chars",
    "poll_interval",
    "result_ttl",
    "status_max_age",
)


TEN_YEARS = 10 * 365 * 86400
"""The longest duration (seconds) of a setting, and the longest wait between two attempts."""
MOST_DAYS = 36_500
"""The longest time for which something is kept, or a token is valid."""
LONGEST_REQUEST = 86_400
"""Seconds of an HTTP request."""
MOST_REQUESTS = 10_000_000
"""Requests of an API token in a minute."""
_MOST = {
    "alert_interval": 3600,
    "api_requests_per_minute": MOST_REQUESTS,
    "backoff_base": TEN_YEARS,
    "backoff_max": TEN_YEARS,
    "cancel_grace": TEN_YEARS,
    "changes_keep": MOST_DAYS,
    "default_hard_timeout": TEN_YEARS,
    "default_timeout": TEN_YEARS,
    "hard_timeout_grace": TEN_YEARS,
    "history_ahead": 120,
    "history_keep": 1200,
    "http_connect_timeout": 3600,
    "http_max_body": 10_000_000,
    "http_redirects": 20,
    "http_timeout": LONGEST_REQUEST,
    "max_argument_bytes": 100_000_000,
    "max_errors": 1000,
    "max_label_bytes": 1_000_000,
    "max_message_chars": 1_000_000,
    "max_result_bytes": 100_000_000,
    "max_traceback_chars": 1_000_000,
    "poll_interval": 3600,
    "result_ttl": TEN_YEARS,
    "status_max_age": TEN_YEARS,
}


def _check_values(made: Settings) -> None:
    for name, most in _MOST.items():
        value = getattr(made, name)
        if value is not None and value > most:
            raise InvalidOption(
                f"TENANTQUEUE[{name.upper()!r}] is {value!r}: it must be at most {most}"
            )
    own = [(n, getattr(made, n)) for n in ("default_queue", "admin_queue", "alert_queue")]
    for name, queue in (*own, *(("queues", queue) for queue in made.queues)):
        if not 1 <= len(queue) <= 100 or not is_storable(queue):
            raise InvalidOption(
                f"TENANTQUEUE[{name.upper()!r}] is {queue!r}: it must be from 1 to 100 "
                "characters long, without NUL characters and lone surrogates"
            )
    if made.priority_scope not in ("global", "tenant"):
        raise InvalidOption(
            f"TENANTQUEUE['PRIORITY_SCOPE'] is {made.priority_scope!r}: "
            "it must be 'global' or 'tenant'"
        )
    for name in _POSITIVE:
        value = getattr(made, name)
        if value is not None and not value > 0:
            raise InvalidOption(f"TENANTQUEUE[{name.upper()!r}] is {value!r}: it must be above 0")
    if not made.cancel_grace >= 0:
        raise InvalidOption(
            f"TENANTQUEUE['CANCEL_GRACE'] is {made.cancel_grace!r}: it must be 0 or more"
        )
    if not 1 <= made.default_max_attempts <= 32767:
        raise InvalidOption(
            f"TENANTQUEUE['DEFAULT_MAX_ATTEMPTS'] is {made.default_max_attempts!r}: "
            "it must be from 1 to 32767"
        )
    for name in ("default_num_slots", "default_user_slots"):
        value = getattr(made, name)
        if value is not None and not 0 <= value <= 1_000_000:
            raise InvalidOption(
                f"TENANTQUEUE[{name.upper()!r}] is {value!r}: it must be from 0 to 1000000"
            )
    if not made.status_error.strip() or not is_storable(made.status_error):
        raise InvalidOption(
            f"TENANTQUEUE['STATUS_ERROR'] is {made.status_error!r}: it must be 'message' or a text"
        )
    for pattern in made.masked_arguments:
        if not pattern.strip(" *") or pattern != pattern.strip():
            raise InvalidOption(
                f"TENANTQUEUE['MASKED_ARGUMENTS'] has {pattern!r}: give names of arguments, or "
                "parts of them with *, without spaces around them"
            )
    tenant = made.fireworq_tenant
    if tenant is not None and (len(tenant) > 200 or not is_storable(tenant)):
        raise InvalidOption(
            f"TENANTQUEUE['FIREWORQ_TENANT'] is {tenant!r}: it must be at most 200 characters "
            "long, without NUL characters and lone surrogates"
        )
    for entry in made.http_allowed_hosts:
        check_host_entry("TENANTQUEUE['HTTP_ALLOWED_HOSTS']", entry)
    token = made.metrics_token
    if token is not None and (len(token) < 16 or not token.isascii() or " " in token):
        raise InvalidOption(
            "TENANTQUEUE['METRICS_TOKEN'] must be at least 16 ASCII characters without spaces"
        )
    if made.http_redirects < 0:
        raise InvalidOption(
            f"TENANTQUEUE['HTTP_REDIRECTS'] is {made.http_redirects!r}: it must be 0 or more"
        )
    for name in ("changes_keep", "history_ahead", "history_keep"):
        value = getattr(made, name)
        if value is not None and value < 1:
            raise InvalidOption(f"TENANTQUEUE[{name.upper()!r}] is {value!r}: it must be 1 or more")


def read_network(entry: str) -> IPv4Network | IPv6Network | None:
    """Return the network that an entry of HTTP_ALLOWED_HOSTS names; None: it names hosts."""
    try:
        return ip_network(entry)
    except ValueError:
        return None


def check_host_entry(whose: str, entry: object) -> None:
    """Raise InvalidOption unless HTTP_ALLOWED_HOSTS may have this entry."""
    if isinstance(entry, str) and (
        read_network(entry) is not None or re.fullmatch(r"[\w*.-]+", entry, re.ASCII)
    ):
        return
    raise InvalidOption(
        f"{whose} has {entry!r}: give the name of a host, with * for any text, an address or a "
        "network, such as '10.1.0.0/16', without scheme and port"
    )


def get_settings() -> Settings:
    """Return the project's settings; read once, and again after override_settings."""
    made = _cache.get("current")
    if made is None:
        raw = getattr(django_settings, "TENANTQUEUE", {})
        if not isinstance(raw, Mapping):
            raise InvalidOption(f"TENANTQUEUE is {raw!r}: it must be a dict")
        made = _cache["current"] = read_settings(raw)
    return made


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "TENANTQUEUE":
        _cache.clear()


setting_changed.connect(_forget)
