"""The Celery app."""

import os
from typing import Any

from celery import Celery, signals

app = Celery("tests", broker=os.environ.get("TEST_BROKER", "memory://"))
limit = float(os.environ.get("TEST_TIME_LIMIT", 0)) or None
app.conf.update(
    task_time_limit=limit,
    task_soft_time_limit=limit and limit / 2,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_prefetch_multiplier=1,
)


@signals.task_prerun.connect
@signals.task_postrun.connect
def note_signal(sender: Any, task_id: str, state: str = "begins", **said: Any) -> None:
    """Write a row about each task but the one that runs jobs."""
    if sender.name != "django_tenantqueue.run":
        from tests.testapp.models import Effect

        Effect.objects.create(job_id=int(task_id), note=f"{sender.name} {state}")
