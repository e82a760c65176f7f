"""Functions of the task framework are routed."""

from __future__ import annotations

from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.models import Job
from tests.contrib import functions


def test_function_is_routed_unless_its_call_names_another_queue():
    Routing.objects.create(pattern="tests.contrib.functions.*", queue="heavy")
    results = [
        functions.echo.enqueue(1),
        functions.echo.using(priority=5).enqueue(1),
        functions.echo.using(queue_name="default").enqueue(1),
    ]
    jobs = [Job.objects.select_related("queue").get(pk=result.id) for result in results]
    assert [job.queue.name for job in jobs] == ["heavy", "heavy", "default"]
