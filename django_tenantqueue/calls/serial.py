"""Serial: the session of a job, and its behaviour when the job waits or fails. No database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..exceptions import InvalidOption
from ..text import is_storable

OnWait = Literal["block", "skip"]
OnFailure = Literal["continue", "halt"]

MOST_KEY = 200
"""Longest key, in characters."""


@dataclass(frozen=True, slots=True)
class Serial:
    """A session: its jobs run one after another. `session="key"` is `session=Serial("key")`.

    - `key`: a str of 1 to 200 characters or an int, which becomes a str. Keys are a tenant's own.
    - `on_wait`: while this job waits for its time or another attempt, the jobs behind it wait, too
      (`block`, the default), or overtake it (`skip`)
    - `on_failure`: when this job has failed for good, or was cancelled, expired or rejected in its
      turn, the next one runs (`continue`, the default), or the session halts (`halt`)

    Raises InvalidOption.
    """

    key: str | int
    on_wait: OnWait = "block"
    on_failure: OnFailure = "continue"

    def __post_init__(self) -> None:
        key: Any = self.key
        text = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
        if not isinstance(text, str) or not 1 <= len(text) <= MOST_KEY or not is_storable(text):
            raise InvalidOption(
                f"Serial({key!r}): the key must be an int, or a str of 1 to {MOST_KEY} characters "
                "without NUL and lone surrogates"
            )
        object.__setattr__(self, "key", text)
        _check("on_wait", self.on_wait, get_args(OnWait))
        if callable(self.on_failure):
            raise InvalidOption(
                f"Serial(on_failure={self.on_failure!r}): it must be 'continue' or 'halt'. A "
                "function that is called after a failure is the method failure(job) of hooks=…, of "
                "@task"
            )
        _check("on_failure", self.on_failure, get_args(OnFailure))


def session_of(key: str | None, *, skips: bool, halts: bool) -> str | Serial | None:
    """Return the option `session` of a job with these columns."""
    if key is None or not (skips or halts):
        return key
    return Serial(
        key,
        on_wait="skip" if skips else "block",
        on_failure="halt" if halts else "continue",
    )


def _check(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidOption(f"Serial({name}={value!r}): it must be {' or '.join(map(repr, known))}")
