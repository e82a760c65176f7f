"""Options of a command that variables of the environment set: TENANTQUEUE_THREADS=16."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

PREFIX = "TENANTQUEUE_"
NEAR = 0.75
"""Similarity, from 0 to 1, from which an unknown variable is reported as a misspelt one."""
FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


class AddNames(argparse.Action):
    """Adds the names of a repeated option. The first ones replace those of the variable."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = getattr(namespace, self.dest)
        before = () if given is self.default else given
        setattr(namespace, self.dest, [*before, *(values or ())])


def take_variables(
    parser: argparse.ArgumentParser, actions: Collection[argparse.Action]
) -> set[str]:
    """Let variables set what the command line leaves out; return the names of all variables.

    A value that the option would reject is an error of the parser, with the variable's name.
    """
    known = set()
    for action in actions:
        for option in action.option_strings:
            name = PREFIX + option.lstrip("-").replace("-", "_").upper()
            known.add(name)
            if (text := os.environ.get(name)) is not None:
                try:
                    action.default = _read(action, text)
                except argparse.ArgumentTypeError as error:
                    parser.error(f"the environment variable {name}: {error}")
    return known


def _read(action: argparse.Action, text: str) -> Any:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: give it a value, or remove it")
    if action.nargs == 0:
        if (flag := FLAGS.get(text.strip().lower())) is None:
            raise argparse.ArgumentTypeError(f"{text[:50]!r} is neither yes nor no: use 1 or 0")
        return flag
    try:
        value = action.type(text) if callable(action.type) else text
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not what the option takes") from None
    if action.choices is not None and value not in action.choices:
        known = ", ".join(map(str, action.choices))
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not one of {known}")
    return value


def near_misses(known: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each variable that looks like a typing error of a known one."""
    names = [name.removeprefix(PREFIX) for name in sorted(known)]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            for near in get_close_matches(name.removeprefix(PREFIX), names, n=1, cutoff=NEAR):
                yield f"the environment variable {name} sets nothing: did you mean {PREFIX}{near}?"
