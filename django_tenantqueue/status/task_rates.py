"""Tasks whose jobs wait for their rates."""

from __future__ import annotations

from ..models import TaskControl
from ..queries.tasks import count_tasks
from .amounts import COUNTED_TO, LATE_SECONDS, LISTED, NAMED
from .figures import counted_text


def tasks_at_their_rates(using: str) -> list[dict[str, str]]:
    """Return `task`, `rate` and `jobs` of tasks whose rate holds jobs, the longest waits first.

    Left out are those whose jobs all start within LATE_SECONDS.
    """
    controls = TaskControl.objects.using(using).filter(max_per_second__isnull=False, paused=False)
    found = {control.pk: control for control in controls.order_by("name")[:LISTED]}
    if not found:
        return []
    waits = [
        (load.line / (found[load.control_id].max_per_second or 1.0), load)
        for load in count_tasks(using, list(found), most=COUNTED_TO)
    ]
    late = [(s, load) for s, load in waits if s > LATE_SECONDS or load.line >= COUNTED_TO]
    return [
        {
            "task": found[load.control_id].name,
            "rate": f"{found[load.control_id].max_per_second:g}",
            "jobs": counted_text(load.line, COUNTED_TO),
        }
        for _seconds, load in sorted(late, key=lambda wait: -wait[0])[:NAMED]
    ]
