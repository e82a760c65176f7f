"""The Celery app of the case `celery`, and its tasks: messages are acknowledged late, and results
are stored in the database."""

import os
import time

from celery import Celery

app = Celery("benchmarks", broker=os.environ.get("BENCHMARK_BROKER", "memory://"))
app.conf.update(
    broker_connection_retry_on_startup=True,
    result_backend=os.environ.get("BENCHMARK_RESULTS", "disabled://"),
    task_acks_late=True,
    task_create_missing_queues=True,
    worker_hijack_root_logger=False,
)
if reuse := os.environ.get("BENCHMARK_REUSE"):
    # tasks for which a process keeps its database connection: Celery closes it after each one
    app.conf["CELERY_DB_REUSE_MAX"] = int(reuse)


@app.task(name="benchmarks.noop")
def noop() -> None:
    """Do nothing."""


@app.task(name="benchmarks.warm_up")
def warm_up() -> None:
    """Keep a process busy until each has a job."""
    time.sleep(0.3)
