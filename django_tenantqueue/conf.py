"""The dict `TENANTQUEUE` of a project's settings: read lazily, checked, kept as one Settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, get_args, get_origin, get_type_hints

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from .exceptions import InvalidOption
from .settings import ExecutorEntry, Settings
from .text import is_storable

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


_ADDED = frozenset({"masked_arguments", "context"})
"""Settings whose entries are added to the default, so that a project cannot lose it by mistake."""


def _added(name: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the default of a setting with these entries; "!x" leaves out x, and "!*" all of it."""
    default = getattr(Settings(), name)
    out = {entry[1:] for entry in given if entry.startswith("!")}
    if unknown := out - {"*", *default}:
        raise InvalidOption(
            f"TENANTQUEUE[{name.upper()!r}] has {'!' + min(unknown)!r}, but '!' leaves out an "
            f"entry of the default. Use one of {', '.join(map(repr, default))}, or '*' for "
            "all of them"
        )
    kept = [entry for entry in default if not {"*", entry} & out]
    return (*dict.fromkeys([*kept, *(entry for entry in given if entry[:1] != "!")]),)


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
    for name in _ADDED.intersection(chosen):
        chosen[name] = _added(name, chosen[name])
    made = Settings(**chosen)
    _check_values(made)
    return made


_POSITIVE = (
    "alert_interval",
    "api_queues_per_day",
    "api_requests_per_minute",
    "api_waits_per_token",
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
    "api_queues_per_day": 1_000_000,
    "api_requests_per_minute": MOST_REQUESTS,
    "api_waits_per_token": 100_000,
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


def alias_of(using: str | None) -> str:
    """Return the alias of the jobs' database: `using`, or that of the settings when it is None."""
    return using or get_settings().database


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "TENANTQUEUE":
        _cache.clear()


setting_changed.connect(_forget)
