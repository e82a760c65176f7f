"""The Celery task that takes over a claim and runs its job in this process."""

from __future__ import annotations

import os
import sys
from typing import Any

from celery import current_task, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_process_shutdown, worker_shutdown

from ...exceptions import TimeLimitExceeded, Unsupported
from ...executors import Claim
from ...worker.remote import close_processes, known_as, run_claim

NAME = "django_tenantqueue.run"


class JobTimeLimit(TimeLimitExceeded, SoftTimeLimitExceeded):
    """The time limit of a job, as the error that tasks of Celery expect."""


known_as[TimeLimitExceeded] = JobTimeLimit


def _is_green() -> bool:
    """Whether gevent or eventlet have replaced threads: the claim loop needs real ones."""
    for module in ("gevent.monkey", "eventlet.patcher"):
        found: Any = sys.modules.get(module)
        if found is not None:
            is_patched = getattr(found, "is_module_patched", None) or found.is_monkey_patched
            if is_patched("thread" if module.startswith("eventlet") else "threading"):
                return True
    return False


@shared_task(
    name=NAME,
    ignore_result=True,
    acks_late=False,
    max_retries=0,
    serializer="json",
    track_started=False,
)
def run(claim: str, executor: str) -> bool:
    """Run the job of a claim; False: another message has taken it over, or it was lost."""
    if _is_green():
        raise Unsupported(
            "jobs need real threads: start this Celery worker with --pool=prefork, threads or solo"
        )
    host = getattr(current_task.request, "hostname", None) or "celery"
    return run_claim(executor, Claim.parse(claim), f"{host} {os.getpid()}")


@worker_process_shutdown.connect(weak=False, dispatch_uid="tenantqueue")
@worker_shutdown.connect(weak=False, dispatch_uid="tenantqueue")
def _sign_off(**kwargs: Any) -> None:
    close_processes()
