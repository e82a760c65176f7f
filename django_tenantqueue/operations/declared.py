"""Update rows to match declarations in code: `@task(max_per_second=…)`."""

from __future__ import annotations

from ..calls.sources import registered_tasks
from ..models import TaskControl
from .task_control import rate_task


def add_rates(using: str) -> list[str]:
    """Give tasks that declare a rate a control, where they have none; return which.

    An existing control stays as it is: from then on operators edit the rate.
    """
    rates = {task.name: task.rate for task in registered_tasks().values() if task.rate}
    controls = TaskControl.objects.using(using).filter(task__in=rates)
    known = set(controls.values_list("task", flat=True)) if rates else set()
    added = sorted(set(rates) - known)
    for name in added:
        rate_task(name, *rates[name], using=using)
    return added
