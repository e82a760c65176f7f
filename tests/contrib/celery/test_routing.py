"""Routings beside executors."""

from __future__ import annotations

import pytest

from django_tenantqueue.contrib.routing.models import Routing
from tests.contrib.celery.test_jobs import executors as executors
from tests.testapp.tasks import noop

NEEDS = "routing"
pytestmark = pytest.mark.django_db


def test_queue_of_the_call_wins_over_a_routing() -> None:
    Routing.objects.create(pattern="*", queue="heavy", tenant="")

    assert noop.using(queue="celery").delay().queue.name == "celery"


def test_job_that_a_routing_sends_to_a_queue_of_an_executor_goes_there() -> None:
    Routing.objects.create(pattern="tests.testapp.tasks.*", queue="celery-heavy", tenant="")

    assert noop.delay().queue.executor == "celery"
