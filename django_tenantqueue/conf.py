"""The dict `TENANTQUEUE` of a project's settings: read lazily, checked, kept as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from django.apps import apps
from django.conf import settings as django_settings
from django.core.signals import setting_changed

from .exceptions import InvalidOption
from .features import installed
from .settings import ExecutorEntry, Rules, Settings
from .text import is_storable

Kind = TypeVar("Kind")

_cache: dict[type[Any], Any] = {}
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


def _added(name: str, default: tuple[str, ...], given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the default of a setting with these entries; "!x" leaves out x, and "!*" all of it."""
    out = {entry[1:] for entry in given if entry.startswith("!")}
    if unknown := out - {"*", *default}:
        raise InvalidOption(
            f"TENANTQUEUE[{name.upper()!r}] has {'!' + min(unknown)!r}, but '!' leaves out an "
            f"entry of the default. Use one of {', '.join(map(repr, default))}, or '*' for "
            "all of them"
        )
    kept = [entry for entry in default if not {"*", entry} & out]
    return (*dict.fromkeys([*kept, *(entry for entry in given if entry[:1] != "!")]),)


def settings_kinds() -> list[type[Any]]:
    """Return the dataclasses of all keys: the core's, then those of the installed features."""
    return [Settings, *(one.settings for one in installed() if one.settings)]


def all_settings() -> list[Any]:
    """Return the values of all of them, in the same order. See settings_of()."""
    return [settings_of(kind) for kind in settings_kinds()]


def read_settings(raw: Mapping[str, Any]) -> dict[type[Any], Any]:
    """Return the settings made of `raw`, one instance of each dataclass.

    Raises InvalidOption naming an entry that is wrong.
    """
    kinds = settings_kinds()
    _check_keys(raw, [each.name.upper() for kind in kinds for each in fields(kind)])
    return {kind: _read(kind, raw) for kind in kinds}


_APPS = {
    "ALERT": "alerts",
    "API": "api",
    "FIREWORQ": "fireworq",
    "HTTP": "http",
    "METRICS": "prometheus",
}
"""Our optional apps by the first word of their keys."""


def _check_keys(raw: Mapping[str, Any], known: list[str]) -> None:
    words = {key.partition("_")[0] for key in known}
    for key in raw:
        if key in known:
            continue
        word = str(key).partition("_")[0]
        if word in _APPS and word not in words:
            app = f"django_tenantqueue.contrib.{_APPS[word]}"
            raise InvalidOption(f"TENANTQUEUE[{key!r}] needs {app} in INSTALLED_APPS")
        near = get_close_matches(str(key), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
        raise InvalidOption(f"TENANTQUEUE[{key!r}] is not a setting{hint}")


def _read(kind: type[Kind], raw: Mapping[str, Any]) -> Kind:
    hints = get_type_hints(kind)
    chosen: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if (key := each.name.upper()) in raw:
            value = _checked(each.name, raw[key], hints[each.name])
            rules = each.metadata.get("rules", Rules())
            if rules.is_added:
                value = _added(each.name, getattr(kind(), each.name), value)
            for entry in value if isinstance(value, tuple) else (value,):
                if entry is not None and (wanted := rules.wanted(entry)):
                    raise InvalidOption(f"TENANTQUEUE[{key!r}] is {entry!r}: it must be {wanted}")
            chosen[each.name] = value
    made = kind(**chosen)
    if check := getattr(made, "check", None):
        check()
    return made


def settings_of(kind: type[Kind]) -> Kind:
    """Return the project's values of a feature's settings: `settings_of(HttpSettings)`.

    All settings are read once, and again after override_settings. Raises InvalidOption if one of
    them is wrong, and LookupError if the feature is not installed. Until Django has started, the
    features are not known: only the keys of `kind` are read, at each call.
    """
    made: Kind | None = _cache.get(kind)
    if made is None:
        raw = getattr(django_settings, "TENANTQUEUE", {})
        if not isinstance(raw, Mapping):
            raise InvalidOption(f"TENANTQUEUE is {raw!r}: it must be a dict")
        if not apps.ready:
            return _read(kind, raw)
        found = read_settings(raw)
        if kind not in found:
            raise LookupError(f"{kind.__module__} belongs to no app in INSTALLED_APPS")
        _cache.update(found)
        made = found[kind]
    return made


def get_settings() -> Settings:
    """Return the project's values of the core's settings. See settings_of()."""
    return settings_of(Settings)


def alias_of(using: str | None) -> str:
    """Return the alias of the jobs' database: `using`, or that of the settings when it is None."""
    return using or get_settings().database


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting in ("TENANTQUEUE", "INSTALLED_APPS"):
        _cache.clear()


setting_changed.connect(_forget)
