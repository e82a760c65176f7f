"""Hides the secret values of jobs wherever they are shown. SECRETS of settings.py names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Any

from ..calls import searchable_option, secret_option
from ..calls.known import known_secret, known_signature
from ..calls.secret_option import Places, keyword_name, parameter_names, places_of, read_mark
from ..conf import get_settings
from ..models import Job

MASK = "••••••"
"""What is shown in place of a secret value."""

MARKS = (secret_option.KEY, searchable_option.KEY)
"""Keys of stored arguments that are not shown."""

COLUMNS = ("args", "result_data", "stats", "context", "unique_key", "exclusive_key", "follow_ups")
"""The attributes of a job that may hold secret values, and what masked_columns() masks."""


@dataclass(frozen=True, slots=True)
class Mask:
    """What of one job is hidden.

    `whole`: all arguments and the result. `places`: positions and names of arguments. `names`: what
    the positional arguments are called, as far as that is known.
    """

    whole: bool
    places: Places
    names: tuple[str, ...]

    def call(self, stored: Any) -> Any:
        """Return stored arguments without the secret ones, in the same shape."""
        args, kwargs = split(stored)
        if args is None or kwargs is None:
            return MASK if self.whole else masked(stored)
        positional = [
            MASK if self._hides(place, self.name_of(place)) else masked(value)
            for place, value in enumerate(args)
        ]
        if not isinstance(stored, dict):
            return positional  # by raw SQL
        named = {
            name: MASK if self._hides(name, name) else masked(value)
            for name, value in kwargs.items()
        }
        known = {"args": positional, "kwargs": named}
        return {
            name: known[name] if name in known else MASK if self.whole else masked(value)
            for name, value in stored.items()
            if name not in MARKS
        }

    def result(self, value: Any) -> Any:
        """Return a result without what is secret in it."""
        return MASK if self.whole and value is not None else masked(value)

    def name_of(self, position: int) -> str:
        """Return what a positional argument is called; "" when that is not known."""
        return self.names[position] if position < len(self.names) else ""

    def _hides(self, place: int | str, name: str) -> bool:
        return self.whole or place in self.places or is_secret(name)


def split(stored: Any) -> tuple[list[Any] | None, dict[str, Any] | None]:
    """Return the positional and the keyword arguments that a job stores; None: it has none such."""
    call = stored if isinstance(stored, dict) else {"args": stored}
    args, kwargs = call.get("args") or [], call.get("kwargs") or {}
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        return None, None  # raw SQL has put something else there
    return args, kwargs


def mask_of(source_type: str, source_id: str, source_method: str, stored: Any) -> Mask:
    """Return what is hidden of a job: what its task, its row and MASKED_ARGUMENTS say together."""
    whole, places = read_mark(stored) if isinstance(stored, dict) else (False, frozenset())
    secret = known_secret(source_type, source_method)
    whole |= secret is not None and secret.whole
    args, kwargs = split(stored)
    if args is None or kwargs is None:  # which of them are secret is unknown
        return Mask(whole or bool(places) or secret is not None, places, ())
    signature = known_signature(source_type, source_id, source_method)
    if signature is None:
        return Mask(whole, places, ())
    if secret is not None:
        places |= places_of(secret, signature, len(args), kwargs)
    places |= {name for name in kwargs if is_secret(keyword_name(signature, name))}
    return Mask(whole, places, tuple(parameter_names(signature, len(args))))


def mask_of_job(job: Job) -> Mask:
    """Return what is hidden of a job."""
    return mask_of(job.source_type, job.source_id, job.source_method, job.args)


def masked_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns of a job, by attribute, without what is secret in COLUMNS.

    The keys of a unique job are masked when one of its arguments is: they may be made from it.
    """
    stored = columns["args"]
    mask = mask_of(columns["source_type"], columns["source_id"], columns["source_method"], stored)
    call = None if stored is None else mask.call(stored)
    plain = (
        {name: value for name, value in stored.items() if name not in MARKS}
        if isinstance(stored, dict)
        else stored
    )
    hides_keys = call != plain
    keys = {name: columns[name] for name in ("unique_key", "exclusive_key")}
    return {
        **columns,
        **{name: MASK if hides_keys and key is not None else key for name, key in keys.items()},
        "args": call,
        "result_data": mask.result(columns["result_data"]),
        "stats": masked(columns["stats"]),
        "context": masked(columns["context"]),
        "follow_ups": _named(columns["follow_ups"]),
    }


def _named(follow_ups: Any) -> Any:
    """Return what follows a job by name: each stores arguments, keys and more of its own job."""
    if not isinstance(follow_ups, list):
        return None
    shown = ("on", "id", "task", "queue_id")
    return [
        {name: stored[name] for name in shown if name in stored}
        for stored in follow_ups
        if isinstance(stored, dict)
    ]


def masked(value: Any) -> Any:
    """Return a value with each key that MASKED_ARGUMENTS names masked, at any depth."""
    try:
        return _masked(value)
    except RecursionError:
        return MASK  # nested too deeply to be looked through


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: MASK if is_secret(k) else _masked(inner) for k, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner) for inner in value]
    return value


def is_secret(name: str) -> bool:
    """Whether MASKED_ARGUMENTS names an argument or a key."""
    pattern = _pattern(get_settings().masked_arguments)
    return pattern is not None and pattern.match(_plain(name)) is not None


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(translate(_plain(name)) for name in names)) if names else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
