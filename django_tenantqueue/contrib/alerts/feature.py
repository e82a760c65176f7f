"""What alerts adds to the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...batches import BATCH
from ...duties import WhenDue
from ...features import Duty, Feature

if TYPE_CHECKING:
    from ...queries.base import Where


class Alerts(Feature):
    """See features.py for when each method is called."""

    def ready(self) -> None:
        from ...alerts import delivery  # noqa: F401 - workers must know its task

    def duties(self, look: Callable[[], Where | None]) -> Iterable[Duty]:
        from ...alerts import check  # it declares a task, for which features are asked

        due = WhenDue(check.seconds_to_next_check, check.check_rules)
        yield Duty("check_alerts", due.step, 5.0, pause_after=due.pause_after)
        yield Duty("prune_alerts", check.prune_alerts, 600.0, BATCH)
