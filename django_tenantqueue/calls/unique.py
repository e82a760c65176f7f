"""Unique: which jobs are duplicates, for how long, and how a duplicate is handled. No database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, get_args

from ..exceptions import InvalidOption
from ..settings import TEN_YEARS
from ..text import is_storable

UNTIL_EXECUTING: Final = "until_executing"
UNTIL_EXECUTED: Final = "until_executed"
UNTIL_EXPIRED: Final = "until_expired"
UNTIL_AND_WHILE_EXECUTING: Final = "until_and_while_executing"
WHILE_EXECUTING: Final = "while_executing"
WHILE_EXECUTING_REJECT: Final = "while_executing_reject"
Mode = Literal[
    "until_executing",
    "until_executed",
    "until_expired",
    "until_and_while_executing",
    "while_executing",
    "while_executing_reject",
]
MODES: tuple[Mode, ...] = get_args(Mode)

RETURN: Final = "return"
RAISE: Final = "raise"
REJECT: Final = "reject"
REPLACE: Final = "replace"
RESCHEDULE: Final = "reschedule"
LOG: Final = "log"
Strategy = Literal["return", "raise", "reject", "replace", "reschedule", "log"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

MOST_KEY = 200
"""Longest key, in characters."""

Key = str | Callable[..., str | int]


@dataclass(frozen=True, slots=True)
class Unique:
    """Deduplication rule: which jobs are duplicates, for how long, and how one is handled.

    The modes are those of the Ruby gem sidekiq-unique-jobs, and so are the strategies, but for
    `return`: https://github.com/mhenrixon/sidekiq-unique-jobs

    - `mode`: one of MODES; default `until_executed`; see docs/explanation/uniqueness.md
    - `key`: what is the same. None: the task and its arguments. A str, or a callable that gets the
      arguments and returns one; then the task does not count. Keys are a tenant's own.
    - `ttl`: seconds or a timedelta from the enqueue after which the key is free whatever became of
      the job; `until_expired` needs one
    - `on_conflict`: one of STRATEGIES; default `return`, the job that has the key

    Raises InvalidOption.
    """

    mode: Mode = UNTIL_EXECUTED
    key: Key | None = None
    ttl: float | timedelta | None = None
    on_conflict: Strategy = RETURN

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidOption(f"Unique({self.mode!r}): the mode must be {_one_of(MODES)}")
        if self.on_conflict not in STRATEGIES:
            raise InvalidOption(
                f"Unique(on_conflict={self.on_conflict!r}): it must be {_one_of(STRATEGIES)}"
            )
        if isinstance(self.key, str):
            check_key(self.key)
        elif self.key is not None and not callable(self.key):
            raise InvalidOption(
                f"Unique(key={self.key!r}): it must be a str, a callable that takes the job's "
                "arguments and returns one, or None for the task and its arguments"
            )
        self._check_ttl()
        self._check_while()

    def _check_ttl(self) -> None:
        seconds = self.ttl_seconds
        if seconds is None:
            if self.mode == UNTIL_EXPIRED:
                raise InvalidOption(
                    f"Unique({self.mode!r}) needs a ttl: how many seconds after the enqueue the "
                    "key expires"
                )
        elif isinstance(self.ttl, bool) or not 0 < seconds < TEN_YEARS:
            raise InvalidOption(
                f"Unique(ttl={self.ttl!r}): it must be seconds or a timedelta, above 0 and below "
                "ten years"
            )

    def _check_while(self) -> None:
        if self.takes_key:
            return
        if self.ttl is not None:
            raise InvalidOption(
                f"Unique({self.mode!r}, ttl={self.ttl!r}): nothing expires there, because a job "
                "holds its key while it runs; leave ttl out, or use until_and_while_executing"
            )
        if self.on_conflict != RETURN:
            raise InvalidOption(
                f"Unique({self.mode!r}, on_conflict={self.on_conflict!r}): any number of jobs may "
                "be enqueued there, so no call has a conflict; leave on_conflict out, or "
                "use an until_ mode"
            )

    @property
    def ttl_seconds(self) -> float | None:
        """The ttl in seconds."""
        if self.ttl is None:
            return None
        if isinstance(self.ttl, timedelta):
            return self.ttl.total_seconds()
        if not isinstance(self.ttl, int | float):
            raise InvalidOption(f"Unique(ttl={self.ttl!r}): it must be seconds or a timedelta")
        return float(self.ttl)

    @property
    def takes_key(self) -> bool:
        """Whether another enqueue of the key may be a duplicate: the `until_*` modes."""
        return self.mode.startswith("until_")

    @property
    def excludes(self) -> bool:
        """Whether one job of the key runs at a time."""
        return self.mode in (UNTIL_AND_WHILE_EXECUTING, WHILE_EXECUTING, WHILE_EXECUTING_REJECT)

    @property
    def ends_at_start(self) -> bool:
        """Whether the key is free as soon as its job starts."""
        return self.mode in (UNTIL_EXECUTING, UNTIL_AND_WHILE_EXECUTING)


def check_key(key: Any) -> str:
    """Return a key as text; raise InvalidOption when it cannot be one."""
    text = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
    if not isinstance(text, str) or not 1 <= len(text) <= MOST_KEY or not is_storable(text):
        raise InvalidOption(
            f"unique key {key!r}: it must be an int, or a str of 1 to {MOST_KEY} characters "
            "without NUL and lone surrogates"
        )
    return text


def _one_of(names: tuple[str, ...]) -> str:
    return f"{', '.join(map(repr, names[:-1]))} or {names[-1]!r}"
