"""Options that are given: checked one by one, and applied to those of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..conf import get_settings
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
    unknown_option,
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
    "then": read_follow_ups,
    "on_end": read_follow_ups,
    "callback_url": check_text,
}
"""What reads the value of each option."""

assert set(CHECKS) == set(NAMES)


def merged(options: Options, changes: JobOptions | dict[str, Any]) -> Options:
    """Return `options` with `changes` applied. `changes` is changed.

    `executor` is a short form: it chooses a queue of that executor. Raises InvalidOption for an
    unknown name or a wrong value.
    """
    given: Any = changes
    if "executor" in given:
        given = _with_queue(given)
    for name, value in given.items():
        check = CHECKS.get(name)
        if check is None:
            raise unknown_option(name, (*NAMES, "executor"))
        if value is not None:
            try:
                given[name] = check(name, value)
            except InvalidOption as error:
                error.option, error.value = name, value
                raise
    if "queue" in given:
        given["queue_is_fixed"] = given["queue"] is not None
    return replace(options, **given)


def _with_queue(changes: dict[str, Any]) -> dict[str, Any]:
    """Return `changes` with a queue of their executor in place of the executor's name."""
    changes = dict(changes)
    name, queue = changes.pop("executor"), changes.get("queue")
    if name is None:
        return changes
    entry = get_settings().executors.get(name)
    if entry is None:
        known = ", ".join(map(repr, get_settings().executors)) or "none"
        raise InvalidOption(
            f"executor={name!r}: TENANTQUEUE['EXECUTORS'] has no executor of that name (it has "
            f"{known})",
            option="executor",
            value=name,
        )
    if queue is None:
        changes["queue"] = next((q for q in entry.new_queues if "*" not in q), name)
    elif not entry.has(queue):
        raise InvalidOption(
            f"queue={queue!r} is not one of executor {name!r}, whose NEW_QUEUES are "
            f"{list(entry.new_queues)!r}: give one of them, or the queue alone",
            option="queue",
            value=queue,
        )
    return changes
