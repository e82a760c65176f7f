"""Secret arguments of a task: `@task(secret=…)`, and what a job's row says of them.

The stored arguments of a job have a third key, `secret`, where the task declares some: `true`, or
the places of its secret arguments, each a position or a name. So the jobs of a task are recognised
also in a process that does not know the task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import Parameter, Signature
from typing import Any

from ..exceptions import InvalidOption

KEY = "secret"
"""The key in the stored arguments."""

Places = frozenset[int | str]


@dataclass(frozen=True, slots=True)
class Secret:
    """The secret parameters of a task. `whole`: all arguments, and the result."""

    names: frozenset[str]
    whole: bool = False


def read_secret(task: str, value: Any, signature: Signature) -> Secret | None:
    """Return what `secret=value` of a task declares; raise InvalidOption for a wrong value."""
    if value is None or value is False:
        return None
    if value is True:
        return Secret(frozenset(), whole=True)
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidOption(
            f"{task}: secret={value!r} must be True, or names of the task's parameters, as in "
            "secret=('password',)"
        )
    for name in names:
        if name not in signature.parameters:
            known = ", ".join(signature.parameters) or "none"
            near = get_close_matches(name, signature.parameters, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {known}"
            raise InvalidOption(
                f"{task}: secret={value!r} names {name!r}, which is no parameter of it; {hint}"
            )
    return Secret(frozenset(names)) if names else None


def parameter_names(signature: Signature, count: int) -> list[str]:
    """Return the names of the parameters that `count` positional arguments go to, in order.

    Fewer, when the function does not take them all.
    """
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            return [*names, *[parameter.name] * (count - len(names))]
        if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        if len(names) == count:
            break
    return names[:count]


def keyword_name(signature: Signature, name: str) -> str:
    """Return the name of the parameter that a keyword argument goes to: that of `**options`, too.

    A keyword that the function does not take is its own.
    """
    found = signature.parameters.get(name)
    if found is not None and found.kind is not Parameter.POSITIONAL_ONLY:
        return name
    for parameter in signature.parameters.values():
        if parameter.kind is Parameter.VAR_KEYWORD:
            return parameter.name
    return name


def places_of(
    secret: Secret, signature: Signature, count: int, keywords: Mapping[str, Any]
) -> Places:
    """Return where the secret arguments of a call are: positions and names."""
    names = parameter_names(signature, count)
    positional = {place for place, name in enumerate(names) if name in secret.names}
    named = {name for name in keywords if keyword_name(signature, name) in secret.names}
    return frozenset(positional | named)


def marked(
    text: str,
    secret: Secret,
    signature: Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> str:
    """Return the JSON text of a call's arguments with the key that says which are secret."""
    places = places_of(secret, signature, len(args), kwargs)
    if not secret.whole and not places:
        return text
    said = True if secret.whole else sorted(places, key=str)
    return f'{text[:-1]},"{KEY}":{json.dumps(said, ensure_ascii=False)}}}'


def read_mark(call: Mapping[str, Any]) -> tuple[bool, Places]:
    """Return whether the stored arguments say that all is secret, and the places that they name."""
    said = call.get(KEY)
    if not isinstance(said, list):
        return bool(said), frozenset()  # what raw SQL has put there hides all
    return False, frozenset(place for place in said if isinstance(place, int | str))


def with_mark(declared: Secret | None, call: Any, signature: Signature) -> Secret | None:
    """Return what a task declares as secret, with what the stored arguments of a job say."""
    whole, places = read_mark(call) if isinstance(call, dict) else (False, frozenset())
    if not whole and not places:
        return declared
    names = parameter_names(signature, len(call.get("args") or ()))
    found = {keyword_name(signature, place) for place in places if isinstance(place, str)}
    found |= {name for place, name in enumerate(names) if place in places}
    known = declared or Secret(frozenset())
    return Secret(known.names | found, known.whole or whole)
