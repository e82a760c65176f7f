"""The Celery app."""

import os

from celery import Celery

app = Celery("tests", broker=os.environ.get("TEST_BROKER", "memory://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_prefetch_multiplier=1,
)
