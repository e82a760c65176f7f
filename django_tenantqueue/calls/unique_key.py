"""The key of a unique job's call. No database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ..exceptions import InvalidArgument
from ..gate_keys import gate_key
from . import searchable_option, secret_option
from .arguments import encode_args
from .sources import Source, find_task, signature_of
from .unique import Unique, check_key


def make_key(
    unique: Unique,
    source: Source,
    tenant: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    text: str,
) -> str:
    """Return the key of a call, whose arguments as JSON are `text`.

    Raises InvalidOption for what the callable of `Unique.key` returns.
    """
    if unique.key is None:
        return gate_key(tenant, _default_key(source, args, kwargs, text))
    if isinstance(unique.key, str):
        return gate_key(tenant, unique.key)
    return gate_key(tenant, check_key(unique.key(*args, **kwargs)))


def _default_key(
    source: Source, args: tuple[Any, ...], kwargs: Mapping[str, Any], text: str
) -> str:
    """Return a key of the call and its arguments: a readable name, and a digest."""
    if source.source_type == "task":
        text = _with_all_arguments(source, args, kwargs, text)
    call = json.loads(text)
    for mark in (secret_option.KEY, searchable_option.KEY):
        call.pop(mark, None)  # a task that begins to declare an argument keeps its keys
    what = (source.source_type, source.source_id, source.source_method, call)
    digest = hashlib.blake2b(
        json.dumps(what, sort_keys=True, separators=(",", ":")).encode(), digest_size=16
    )
    return f"{source.name[-80:]}:{digest.hexdigest()}"


def _with_all_arguments(
    source: Source, args: tuple[Any, ...], kwargs: Mapping[str, Any], text: str
) -> str:
    """Return the same JSON for calls that mean the same: `f(1)`, `f(a=1)`, `f(1, default)`."""
    signature = signature_of(find_task(source.source_method).func)
    if not kwargs and len(args) == len(signature.parameters):
        return text
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    try:
        return encode_args(bound.args, bound.kwargs)
    except InvalidArgument:  # a default that no job could be given, and that this one was not
        return text
