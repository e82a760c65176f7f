"""Use the project's tasks as a view would, and tell what came of it.

As a program it runs on any backend: `PROJECT_BACKEND=… python -m tests.contrib.project.exercise`.
"""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.utils import timezone

PATIENCE = 30.0


def exercise() -> dict[str, Any]:
    """Enqueue, wait for a worker, and return what results say."""
    from . import mails

    results = {
        "send": mails.send.enqueue("a@example.com", subject="Hello"),
        "fetch": async_to_sync(mails.fetch.using(priority=-5).aenqueue)(7),
        "attempt": mails.attempt.enqueue(),
        "bounce": mails.bounce.enqueue("b@example.com"),
    }
    late = mails.send.using(run_after=timezone.now() + timedelta(days=1)).enqueue("later")
    end = time.monotonic() + PATIENCE
    while not all(result.is_finished for result in results.values()):
        assert time.monotonic() < end, results
        for result in results.values():
            result.refresh()
        time.sleep(0.05)
    late.refresh()
    told = {name: tell(result) for name, result in results.items()}
    again = mails.bounce.get_result(results["bounce"].id)
    told["bounce"]["error"] = again.errors[0].exception_class.__name__
    told["bounce"]["traceback"] = "b@example.com" in again.errors[0].traceback
    return {**told, "late": tell(late)}


def tell(result: Any) -> dict[str, Any]:
    """Return what a result says that is the same on every backend."""
    return {
        "status": str(result.status),
        "value": result.return_value if str(result.status) == "SUCCESSFUL" else None,
        "attempts": result.attempts,
        "args": result.args,
        "kwargs": result.kwargs,
        "errors": len(result.errors),
        "priority": result.task.priority,
        "queue": result.task.queue_name,
        "deferred": result.task.run_after is not None,
        "backend": result.backend,
        "path": result.task.module_path,
        "times": [
            moment is not None
            for moment in (
                *(result.enqueued_at, result.started_at),
                *(result.last_attempted_at, result.finished_at),
            )
        ],
    }


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.contrib.project.settings")
    import django

    django.setup()
    print(json.dumps(exercise(), indent=1))  # noqa: T201
