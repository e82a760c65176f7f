"""The dict `TENANTQUEUE` of a project's settings: read lazily, checked, kept as dataclasses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from datetime import timedelta
from difflib import get_close_matches
from types import NoneType, UnionType
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
_current: ContextVar[str | None] = ContextVar("tenantqueue_database", default=None)
_of_process: list[str] = []
"""The database of this process: see process_database()."""
_elsewhere: dict[str, tuple[Settings, Settings]] = {}
"""alias -> the settings as they are, and the same with this DATABASE."""
_ENTRY_KEYS = ("BACKEND", "NEW_QUEUES", "OPTIONS")


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
    queues, options = entry.get("NEW_QUEUES", [name]), entry.get("OPTIONS", {})
    if (
        not isinstance(queues, list | tuple)
        or not queues
        or not all(isinstance(q, str) and 1 <= len(q) <= 100 for q in queues)
    ):
        raise InvalidOption(
            f"{where}['NEW_QUEUES'] is {queues!r}: it must be a list of names of queues"
        )
    if not isinstance(options, Mapping):
        raise InvalidOption(f"{where}['OPTIONS'] is {options!r}: it must be a dict")
    return ExecutorEntry(name, entry["BACKEND"], tuple(queues), dict(options))


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is UnionType else (hint,)


def shape_of(hint: Any) -> str:
    """Return what a setting of this type is, in words: "int or None", "a list of str"."""
    return " or ".join(map(_shape, _kinds(hint)))


def _shape(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a list of {get_args(kind)[0].__name__}"
    if get_origin(kind) is Mapping:
        return "a dict"
    return {float: "a duration", NoneType: "None"}.get(kind) or str(kind.__name__)


def _checked(place: str, value: Any, hint: Any) -> Any:
    for kind in _kinds(hint):
        if kind is float:
            if isinstance(value, timedelta):
                return value.total_seconds()
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        elif get_origin(kind) is tuple:
            # a str is a sequence of str, too: read as one, "reports.*" would allow everything
            if isinstance(value, list | tuple) and all(
                isinstance(entry, get_args(kind)[0]) or _removes(entry) for entry in value
            ):
                return tuple(value)
        elif get_origin(kind) is Mapping:
            return _read_executors(value)
        elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
    more = " (a number of seconds, or a timedelta)" if float in _kinds(hint) else ""
    raise InvalidOption(f"{place} is {value!r}: it must be {shape_of(hint)}{more}")


def _removes(entry: Any) -> bool:
    return isinstance(entry, str) and entry.startswith("!")


def _added(place: str, default: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the default of a list with these entries; "!x" leaves out x, and "!*" all of it."""
    out = {entry[1:] for entry in given if _removes(entry)}
    if unknown := out - {"*", *map(str, default)}:
        raise InvalidOption(
            f"{place} has {'!' + min(unknown)!r}, but '!' leaves out an entry of the default. Use "
            f"one of {', '.join(repr(f'!{entry}') for entry in default)}, or '!*' for all of them"
        )
    kept = [entry for entry in default if not {"*", str(entry)} & out]
    return (*dict.fromkeys([*kept, *(entry for entry in given if not _removes(entry))]),)


def settings_kinds() -> list[type[Any]]:
    """Return the dataclasses of all keys: the core's, then those of the installed features."""
    return [Settings, *(one.settings for one in installed() if one.settings)]


def all_settings() -> list[Any]:
    """Return the values of all of them, in the same order. See settings_of()."""
    return [settings_of(kind) for kind in settings_kinds()]


def _known_keys(kinds: Iterable[type[Any]]) -> dict[str, list[str]]:
    """Return the keys of each dict, "" for the core."""
    known: dict[str, list[str]] = {}
    for kind in kinds:
        known.setdefault(kind.group, []).extend(keys_of(kind))
    return known


def unread_settings() -> dict[str, str]:
    """Return Django settings that are written for keys of TENANTQUEUE, and how to write each."""
    names = (name for name in dir(django_settings) if name.startswith(_PREFIX))
    return {name: told for name in sorted(names) if (told := _meant_key(name))}


def _meant_key(setting: str) -> str | None:
    """Return how to write TENANTQUEUE_EAGER in the dict; None: it is not meant for it."""
    name = setting.removeprefix(_PREFIX)
    name = _ELSEWHERE.get(name, name)
    known = _known_keys(settings_kinds())
    if name in known or name in known[""]:
        told = f"TENANTQUEUE = {{{name!r}: …}}"
    else:
        homes = [
            (group, key)
            for group, keys in known.items()
            for key in keys
            if group and name == f"{group}_{key}"
        ]
        if not homes:
            return None
        group, key = homes[0]
        told = f"TENANTQUEUE = {{{group!r}: {{{key!r}: …}}}}"
    if name == "EAGER":
        told += ", or in a test use eager() of django_tenantqueue.testing"
    return told


def read_settings(raw: Mapping[str, Any]) -> dict[type[Any], Any]:
    """Return the settings made of `raw`, one instance of each dataclass.

    Raises InvalidOption naming an entry that is wrong.
    """
    kinds = settings_kinds()
    _check_keys(raw, _known_keys(kinds))
    return {kind: _read(kind, raw) for kind in kinds}


def keys_of(kind: type[Any]) -> list[str]:
    """Return the keys of a dataclass of settings, in its dict."""
    return [each.name.upper() for each in fields(kind)]


def place_of(group: str, key: Any) -> str:
    """Return how a message names a setting: "TENANTQUEUE['HTTP']['TIMEOUT']"."""
    return f"TENANTQUEUE[{group!r}][{key!r}]" if group else f"TENANTQUEUE[{key!r}]"


_APPS = {
    "ALERTS": "alerts",
    "API": "api",
    "FIREWORQ": "fireworq",
    "HTTP": "http",
    "METRICS": "prometheus",
    "SHARDS": "shards",
}
"""Optional apps of the package by the names of their dicts."""


_PREFIX = "TENANTQUEUE_"
_ELSEWHERE = {
    "ALWAYS_EAGER": "EAGER",
    "ASYNC": "EAGER",
    "CONCURRENCY": "DEFAULT_TENANT_SLOTS",
    "IMMEDIATE": "EAGER",
    "MAX_RETRIES": "DEFAULT_MAX_ATTEMPTS",
    "SYNC": "EAGER",
    "TASK_ALWAYS_EAGER": "EAGER",
    "TASK_TIME_LIMIT": "DEFAULT_HARD_TIMEOUT",
    "TIME_LIMIT": "DEFAULT_HARD_TIMEOUT",
}
"""Keys of other systems, and ours."""


def _check_keys(raw: Mapping[str, Any], known: Mapping[str, list[str]]) -> None:
    """Raise InvalidOption for an unknown key. `known`: the keys of each dict, "" for the core."""
    for key in raw:
        if key in known and key:
            for inner in _dict_of(key, raw):
                if inner not in known[key]:
                    raise _unknown(key, inner, known)
        elif key not in known[""]:
            raise _unknown("", key, known)


def _dict_of(group: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of `raw` with the keys of a group: see Settings.group."""
    own = raw.get(group, {}) if group else raw
    if not isinstance(own, Mapping):
        raise InvalidOption(f"TENANTQUEUE[{group!r}] is {own!r}: it must be a dict")
    return own


def _unknown(group: str, key: Any, known: Mapping[str, list[str]]) -> InvalidOption:
    place = place_of(group, key)
    missing = [name for name in _APPS if name not in known and f"{key}_".startswith(f"{name}_")]
    if missing and not group:
        app = f"django_tenantqueue.contrib.{_APPS[missing[0]]}"
        return InvalidOption(f"{place} needs {app} in INSTALLED_APPS")
    if homes := [other for other, keys in known.items() if key in keys]:
        right = " or ".join(place_of(home, key) for home in homes)
        return InvalidOption(f"{place} is not a setting: its place is {right}")
    names = known[group]
    choices = {name: place_of(group, name) for name in names}
    if not group:  # maybe the name of a dict, or of a key in one that is written without it
        names = [*names, *filter(None, known)]
        choices |= {name: place_of("", name) for name in names}
        choices |= {f"{g}_{name}": place_of(g, name) for g in known if g for name in known[g]}
    near = [_ELSEWHERE[key]] if not group and key in _ELSEWHERE else []
    near += [name for name in choices if name.endswith(f"_{key}") or f"{key}".endswith(f"_{name}")]
    near = near or get_close_matches(str(key), choices, n=2)
    if near:
        right = " or ".join(dict.fromkeys(choices[name] for name in near))
        return InvalidOption(f"{place} is not a setting; did you mean {right}?")
    return InvalidOption(f"{place} is not a setting; known are {', '.join(names)}")


def _read(kind: type[Kind], raw: Mapping[str, Any]) -> Kind:
    hints = get_type_hints(kind)
    group: str = kind.group  # type: ignore[attr-defined]
    own = _dict_of(group, raw)
    chosen: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if (key := each.name.upper()) in own:
            place = place_of(group, key)
            value = _checked(place, own[key], hints[each.name])
            default = each.default
            if isinstance(value, tuple) and isinstance(default, tuple) and default:
                value = _added(place, default, value)
            rules = each.metadata.get("rules", Rules())
            for entry in value if isinstance(value, tuple) else (value,):
                if entry is not None and (wanted := rules.wanted(entry)):
                    raise InvalidOption(f"{place} is {entry!r}: it must be {wanted}")
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
    """Return the project's values of the core's settings. See settings_of().

    Its `database` is the current one: see database().
    """
    made = settings_of(Settings)
    alias = _current.get()
    if alias is None:  # inline: it is called several times by each enqueue
        if not _of_process:
            return made
        alias = _of_process[0]
    return made if alias == made.database else _with_database(made, alias)


def _with_database(made: Settings, alias: str) -> Settings:
    known = _elsewhere.get(alias)
    if known is None or known[0] is not made:
        known = _elsewhere[alias] = made, replace(made, database=alias)
    return known[1]


@contextmanager
def database(alias: str | None) -> Iterator[None]:
    """Use the jobs in another database inside the with block: `with database("eu2"): …`.

    What gets no `using=` reads and writes there. None: the database stays the same.
    """
    token = _current.set(_current.get() if alias is None else alias)
    try:
        yield
    finally:
        _current.reset(token)


def switch_database(alias: str) -> None:
    """Use the jobs in another database until the end of the innermost database() block."""
    _current.set(alias)


@contextmanager
def process_database(alias: str | None) -> Iterator[None]:
    """Use the jobs in this database in all threads of this process, and of its children.

    None: the database stays the same.
    """
    before = [*_of_process]
    _of_process[:] = before if alias is None else [alias]
    try:
        yield
    finally:
        _of_process[:] = before


def chosen_database() -> str | None:
    """Return the database that a database() block or this process has chosen; None: none has."""
    return _current.get() or (_of_process[0] if _of_process else None)


def main_database() -> str:
    """Return TENANTQUEUE["DATABASE"], whatever the current database is."""
    return settings_of(Settings).database


def alias_of(using: str | None) -> str:
    """Return the alias of the jobs' database: `using`, or the current one when it is None."""
    return using or get_settings().database


def _forget(*, setting: str, enter: bool = False, **kwargs: Any) -> None:
    """Read the settings again, and raise InvalidOption where override_settings() has no effect."""
    if setting in ("TENANTQUEUE", "INSTALLED_APPS"):
        _cache.clear()
        _elsewhere.clear()
    if enter and setting.startswith(_PREFIX) and apps.ready and (told := _meant_key(setting)):
        raise InvalidOption(
            f"{setting} is not read: settings are keys of the dict TENANTQUEUE. Write {told}"
        )


setting_changed.connect(_forget)
