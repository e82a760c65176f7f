"""Options that are given: checked one by one, and applied to those of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..exceptions import InvalidOption
from .call import read_follow_ups
from .option_types import JobOptions
from .options import (
    NAMES,
    Options,
    check_attempts,
    check_moment,
    check_priority,
    check_queue,
    check_seconds,
    check_tenant,
    check_text,
    check_unique,
    read_gate,
    read_labels,
    read_session,
    unknown_options,
)

CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "tenant": check_tenant,
    "queue": check_queue,
    "priority": check_priority,
    "run_at": check_moment,
    "expires_at": check_moment,
    "max_attempts": check_attempts,
    "timeout": check_seconds,
    "hard_timeout": check_seconds,
    "labels": read_labels,
    "created_by": check_text,
    "session": read_session,
    "limit_user": read_gate,
    "unique": check_unique,
    "on_success": read_follow_ups,
    "on_end": read_follow_ups,
    "callback_url": check_text,
}
"""What reads the value of each option."""

assert set(CHECKS) == set(NAMES)


def merged(options: Options, changes: JobOptions | dict[str, Any]) -> Options:
    """Return `options` with `changes` applied. `changes` is changed.

    Raises InvalidOption for an unknown name or a wrong value.
    """
    given: Any = changes
    for name, value in given.items():
        check = CHECKS.get(name)
        if check is None:
            raise unknown_options([each for each in given if each not in CHECKS], NAMES)
        if value is not None:
            try:
                given[name] = check(name, value)
            except InvalidOption as error:
                error.option, error.value = name, value
                raise
    if "queue" in given:
        given["queue_is_fixed"] = given["queue"] is not None
    return replace(options, **given)
