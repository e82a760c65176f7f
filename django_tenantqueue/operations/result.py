"""What a verb of control returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Result(NamedTuple):
    """What a call has done, by the ids of the rows that it was about. Each id is in one of them."""

    changed: list[int]
    """Rows that were changed by this call."""
    requested: list[int]
    """Rows whose end follows: jobs that run and were asked to stop, workers that were asked to end,
    cancelled monitors with details that still run."""
    unchanged: list[int]
    """Rows that were so already, and jobs that the call came too late for."""
    refused: dict[int, str]
    """Rows that cannot be changed, and ids that do not exist, each with the reason."""
    more: bool = False
    """Whether `limit` has left further jobs: call again for them."""

    @classmethod
    def of(
        cls,
        ids: Iterable[int],
        changed: Iterable[int] = (),
        *,
        requested: Iterable[int] = (),
        refused: Mapping[int, str] | None = None,
        more: bool = False,
    ) -> Result:
        """Return a result in which the rest of `ids` is unchanged."""
        done, asked, no = set(changed), set(requested), dict(sorted((refused or {}).items()))
        rest = set(ids) - done - asked - no.keys()
        return cls(sorted(done), sorted(asked), sorted(rest), no, more)
