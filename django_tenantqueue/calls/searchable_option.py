"""Searchable arguments of a task: `@task(searchable=…)`, and what a job's row says of them.

The stored arguments of a job have another key, `search`, where the task declares some: a list of
keys such as `invoice=4711`. It has an index.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from inspect import Signature
from typing import Any

from ..exceptions import InvalidOption
from .arguments import MARK
from .secret_option import Secret, keyword_name, parameter_names

KEY = "search"
"""The key in the stored arguments."""
LONGEST = 500
"""Characters of a value that can be searched for. Longer values have no key."""


def read_searchable(
    task: str, value: Any, signature: Signature, secret: Secret | None
) -> frozenset[str]:
    """Return the parameters that `searchable=value` of a task names; raise InvalidOption."""
    names = (value,) if isinstance(value, str) else value or ()
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidOption(
            f"{task}: searchable={value!r} must be names of the task's parameters, as in "
            "searchable=('invoice',)"
        )
    for name in names:
        if name not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            near = get_close_matches(name, signature.parameters, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {known}"
            raise InvalidOption(
                f"{task}: searchable={value!r} names {name!r}, which is no parameter of it; {hint}"
            )
        if secret is not None and (secret.whole or name in secret.names):
            raise InvalidOption(
                f"{task}: {name!r} is secret, so it cannot be searchable: remove it from one of "
                "the options"
            )
    return frozenset(names)


def with_keys(
    text: str,
    searchable: frozenset[str],
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> str:
    """Return the JSON text of a call's arguments with the keys of those that are searchable."""
    names = [*parameter_names(signature, len(args))]
    names += [keyword_name(signature, name) for name in kwargs]
    if searchable.isdisjoint(names):
        return text
    call = json.loads(text)
    values = [*call["args"], *call.get("kwargs", {}).values()]
    keys = sorted(
        {
            key_of(name, found)
            for name, value in zip(names, values, strict=False)
            if name in searchable
            for found in _texts(value)
        }
    )
    return f'{text[:-1]},"{KEY}":{json.dumps(keys, ensure_ascii=False)}}}' if keys else text


def key_of(name: str, text: str) -> str:
    """Return the key of an argument with a value."""
    return f"{name}={text}"


def _texts(value: Any) -> Iterator[str]:
    """Yield the stored value of an argument as people write it; nothing for lists and objects."""
    if isinstance(value, dict) and MARK in value:
        value = value.get("value")
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, str | int | float) and len(text := str(value)) <= LONGEST:
        yield text
