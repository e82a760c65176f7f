"""Arguments and results as JSON.

Plain JSON values stay as they are, so that SQL can query them. Other types become an object with
the key `__tenantqueue__`, which names the type. Tuples become lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from itertools import repeat
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist
from django.core.serializers.json import DjangoJSONEncoder
from django.db import router
from django.db.models import Model
from django.utils.datastructures import MultiValueDict
from django.utils.dateparse import parse_date, parse_datetime, parse_duration
from django.utils.duration import duration_iso_string

from ..exceptions import InvalidArgument, InvalidResult, Permanent

MARK = "__tenantqueue__"
MOST_BITS = 14_000
"""Of an int: about the 4,300 digits that Python reads and writes."""
MOST_LEVELS = 100
"""Levels of lists and dicts. Python's recursion limit, also where they are shown, is 1,000."""
_PLAIN = frozenset({str, int, bool, type(None)})
_ADVICE = (
    "pass something JSON can carry (str, int, float, bool, None, list, dict with str keys, "
    "datetime, date, time, timedelta, Decimal, UUID, or a saved model instance)"
)

PLACEHOLDERS = ("scheduled_at", "attempt", "tenant", "job_id", "result")
"""Names of values that are filled in when a schedule enqueues a job, or when it runs."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """An argument whose value is known later: `report.delay(Placeholder("job_id"))`.

    "attempt" and "job_id" (int) and "tenant" (str) are filled in when the job runs, and so is
    "result" in a call that follows another job (`on_success=`): the result of that job, None if it
    failed. "scheduled_at", an aware datetime in UTC, is the tick for which a schedule enqueues the
    job. Raises InvalidArgument for another name.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in PLACEHOLDERS:
            raise InvalidArgument(
                f"Placeholder({self.name!r}): it must be one of {', '.join(PLACEHOLDERS)}"
            )


_RESERVED = f"no argument can be called {MARK!r}: the name is reserved. Rename the parameter"
REMOVED = "removed"
"""Marks arguments that a retention rule has removed."""
TICK_MARK = f'{{"{MARK}":"scheduled_at"}}'
"""The placeholder of schedules in encoded arguments. Quotes inside of texts are escaped there."""
RESULT_MARK = f'{{"{MARK}":"result"}}'
"""The same of the previous job's result."""


def _default(value: object) -> dict[str, Any]:
    match value:
        case Placeholder():
            return {MARK: value.name}
        case datetime():
            zone = {"zone": value.tzinfo.key} if isinstance(value.tzinfo, ZoneInfo) else {}
            return {MARK: "datetime", "value": value.isoformat(), **zone}
        case date():
            return {MARK: "date", "value": value.isoformat()}
        case time() if value.tzinfo is not None and value.utcoffset() is None:
            raise InvalidArgument(
                f"is a time in {value.tzinfo}, whose offset depends on the date: pass a datetime "
                "or the time without its zone"
            )
        case time():
            return {MARK: "time", "value": value.isoformat()}
        case timedelta():
            return {MARK: "timedelta", "value": duration_iso_string(value)}
        case Decimal():
            return {MARK: "decimal", "value": str(value)}
        case UUID():
            return {MARK: "uuid", "value": str(value)}
        case Model():
            if value.pk is None or value._state.adding:
                raise InvalidArgument(f"is a {value._meta.label} that is not saved: save it first")
            return {
                MARK: "model",
                "model": value._meta.label_lower,
                "value": _model_key(value),
                **_elsewhere(type(value), value),
            }
    raise InvalidArgument(f"is of type {type(value).__qualname__}: {_ADVICE}")


def _elsewhere(model: type[Model], instance: Model) -> dict[str, str]:
    """Return the alias of the database of an instance, unless it is the usual one of its model."""
    alias = write_alias(instance)
    return {} if alias == router.db_for_write(model) else {"using": alias}


def write_alias(instance: Model) -> str:
    """Return the alias of the database to which an instance is written, and from which it is
    loaded: a replica that it was read from lags, and other machines may not have it."""
    return router.db_for_write(type(instance), instance=instance)


def _model_key(instance: Model) -> Any:
    key = instance.pk
    if type(key) in _PLAIN:
        return key
    return instance._meta.pk.value_to_string(instance) if instance._meta.pk else str(key)


_encoder = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default
)


def check_storable(value: object, path: str, level: int = 0, *, marks: bool = True) -> None:
    """Raise InvalidArgument naming the first place below `value` that cannot be stored.

    `marks`: whether dicts may have the key MARK, as encoded arguments have it.
    """
    if level > MOST_LEVELS:
        raise InvalidArgument(
            f"{path.partition('[')[0]} is nested more than {MOST_LEVELS} levels deep, or contains "
            "itself: store what is nested, and pass its id"
        )
    if isinstance(value, str | int | float) and type(value) not in (*_PLAIN, float):
        plain = next(kind for kind in (str, int, float) if isinstance(value, kind)).__name__
        raise InvalidArgument(
            f"{path} is of type {type(value).__qualname__} and would come back as {plain}: pass "
            + (".value" if isinstance(value, Enum) else f"{plain}(…) of it")
        )
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise InvalidArgument(f"{path} is an int of more than {MOST_BITS:,} bits: pass it as text")
    if isinstance(value, str):
        if "\x00" in value:
            raise InvalidArgument(
                f"{path} contains a NUL character, which PostgreSQL cannot store: remove it"
            )
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidArgument(
                f"{path} contains a lone surrogate: {value!r}. Remove it, or replace it as "
                "text.encode(errors='replace').decode() does"
            ) from None
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidArgument(f"{path} is {value!r}, which JSON cannot carry: pass None")
    elif isinstance(value, Mapping):
        _refuse_mapping(value, path)
        for key, inner in value.items():
            if type(key) is not str:
                raise InvalidArgument(f"{path} has the key {key!r}: keys must be str, use str(…)")
            if key == MARK and not marks:
                raise InvalidArgument(f"{path} has the key {MARK!r}, which is reserved: rename it")
            check_storable(key, f"a key of {path}")
            check_storable(inner, f"{path}[{key!r}]", level + 1, marks=marks)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            check_storable(inner, f"{path}[{index}]", level + 1, marks=marks)
    elif not isinstance(value, int | None):
        try:
            _encoder.encode(value)
        except (InvalidArgument, TypeError, ValueError) as error:
            raise InvalidArgument(f"{path} {error}") from None


def marked_values(value: Any) -> list[dict[str, Any]]:
    """Return the objects inside a JSON value that have the key MARK."""
    found, waiting = [], [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict) and MARK in inner:
            found.append(inner)
        if isinstance(inner, list | dict):
            waiting += inner.values() if isinstance(inner, dict) else inner
    return found[::-1]


def check_entered(args: list[Any], kwargs: dict[str, Any], stored: Any) -> None:
    """Raise InvalidArgument for a use of MARK among arguments that an operator has entered.

    MARK is allowed for placeholders and values. A row of a model would be loaded, so it is allowed
    only if the `stored` arguments have it.
    """
    if MARK in kwargs:
        raise InvalidArgument(_RESERVED)
    kept = marked_values(stored)
    for entry in marked_values([*args, *kwargs.values()]):
        kind = entry[MARK]
        if entry not in kept and kind not in (*PLACEHOLDERS, *_VALUES):
            raise InvalidArgument(
                f"{{{MARK!r}: {kind!r}}} cannot be entered: enter one of "
                f"{', '.join((*PLACEHOLDERS, *_VALUES))}, or an object that the arguments already "
                "have"
            )


def _refuse_mapping(value: Mapping[Any, Any], path: str) -> None:
    """Raise InvalidArgument unless it is a dict, or when its keys may have several values."""
    kind = type(value).__qualname__
    if isinstance(value, MultiValueDict):
        raise InvalidArgument(
            f"{path} is a {kind}, and only the last value of each key would be stored: pass its "
            ".dict() if that is what you want, or dict(….lists())"
        )
    if not isinstance(value, dict):
        raise InvalidArgument(f"{path} is of type {kind}: pass dict(…) of it")


def _needs_look(value: object, level: int = 0) -> bool:
    """Whether a value may have what would silently come back changed: keys, subclasses."""
    if type(value) in _PLAIN or type(value) is float:
        return False
    if isinstance(value, list | tuple):
        return level >= MOST_LEVELS or any(map(_needs_look, value, repeat(level + 1)))
    return isinstance(value, Mapping | str | int | float)


def encode_args(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the JSON text of a call's arguments: {"args": […], "kwargs": {…}}.

    Raises InvalidArgument naming the argument that JSON or PostgreSQL cannot carry.
    """
    call: dict[str, Any] = {"args": args}
    if kwargs:
        call["kwargs"] = kwargs
    if MARK in kwargs:
        raise InvalidArgument(_RESERVED)
    try:
        if any(map(_needs_look, args)) or (kwargs and any(map(_needs_look, kwargs.values()))):
            _refuse_call(args, kwargs)
        text = _encoder.encode(call)
        if "-0.0" in text or "e+" in text:  # floats that jsonb would change
            text = _encoder.encode(_with_marked_floats(call))
        if "\\u0000" in text:
            _refuse_call(args, kwargs)
        if not text.isascii():
            text.encode()
    except (InvalidArgument, TypeError, ValueError, RecursionError):
        _refuse_call(args, kwargs)
        raise
    return text


def _with_marked_floats(value: Any) -> Any:
    if type(value) is float and ((text := repr(value)) == "-0.0" or "e+" in text):
        return {MARK: "float", "value": text}
    if isinstance(value, list | tuple):
        return [_with_marked_floats(inner) for inner in value]
    if isinstance(value, Mapping):
        return {key: _with_marked_floats(inner) for key, inner in value.items()}
    return value


def read_float(entry: dict[str, Any]) -> Any:
    """Return the float that an object of encoded arguments stands for, else the object itself.

    An `object_hook`, for those who show the arguments to a client that has sent JSON.
    """
    if entry.get(MARK) != "float":
        return entry
    try:
        return float(entry["value"])
    except (KeyError, TypeError, ValueError):  # raw SQL has put it there
        return entry


def _load_datetime(entry: Mapping[str, Any]) -> datetime | None:
    moment = parse_datetime(entry["value"])
    if moment is None or "zone" not in entry:
        return moment
    try:
        return moment.astimezone(ZoneInfo(entry["zone"]))
    except (ZoneInfoNotFoundError, OverflowError):
        return moment


def _refuse_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    for index, value in enumerate(args):
        check_storable(value, f"argument {index + 1}", marks=False)
    for name, value in kwargs.items():
        check_storable(name, f"the name of argument {name!r}")
        check_storable(value, f"argument {name!r}", marks=False)


def _load_model(entry: Mapping[str, Any]) -> Model:
    label, key = entry["model"], entry["value"]
    try:
        model: type[Model] = apps.get_model(label)
    except LookupError:
        raise Permanent(f"the model {label!r} of an argument does not exist any more") from None
    try:
        alias = entry.get("using") or router.db_for_write(model)
        return model._base_manager.using(alias).get(pk=key)
    except ObjectDoesNotExist:
        raise Permanent(f"{model._meta.label} {key!r} does not exist any more") from None


_VALUES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "datetime": _load_datetime,
    "float": lambda entry: float(entry["value"]),
    "date": lambda entry: parse_date(entry["value"]),
    "time": lambda entry: time.fromisoformat(entry["value"]),
    "timedelta": lambda entry: parse_duration(entry["value"]),
    "decimal": lambda entry: Decimal(entry["value"]),
    "uuid": lambda entry: UUID(entry["value"]),
}
_LOADERS = {**_VALUES, "model": _load_model}


def _revive(values: Mapping[str, Any], entry: dict[str, Any]) -> Any:
    kind = entry.get(MARK)
    if kind is None:
        return entry
    if kind in PLACEHOLDERS:
        return values[kind] if kind in values else Placeholder(kind)
    loader = _LOADERS.get(kind)
    if kind == REMOVED:
        raise Permanent(
            "the arguments of the job were removed by a retention rule: enqueue a new job"
        )
    if loader is None:
        raise Permanent(
            f"an argument has the unknown type {kind!r}: the process that enqueued it may run a "
            "newer version"
        )
    return loader(entry)


def are_removed(stored: Any) -> bool:
    """Whether a retention rule has removed these stored arguments."""
    return isinstance(stored, dict) and stored.get(MARK) == REMOVED


def decode_args(
    text: str, values: Mapping[str, Any] | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of a job, model instances loaded.

    `values` replaces placeholders. Others stay Placeholders. Raises Permanent when an instance is
    gone.
    """
    revive = partial(_revive, values or {})
    call = json.loads(text, object_hook=revive) if MARK in text else json.loads(text)
    return call.get("args", []), call.get("kwargs") or {}


def size_of(text: str) -> int:
    """Return the bytes of a text."""
    return len(text) if text.isascii() else len(text.encode())


_result_encoder = DjangoJSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_result(value: object, what: str = "result") -> str | None:
    """Return the JSON text of a return value (None for None).

    Raises InvalidResult for what JSON or PostgreSQL cannot carry.
    """
    if value is None:
        return None
    try:
        text = _result_encoder.encode(value)
        if "\\u0000" in text and _has_nul(json.loads(text)):
            raise InvalidResult(
                f"the {what} contains a NUL character, which cannot be stored: remove it"
            )
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        raise InvalidResult(f"the {what} contains a lone surrogate: remove it") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidResult(f"the {what} cannot be stored as JSON: {error}") from error
    return text


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))
