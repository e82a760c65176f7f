"""Strict queues: a name that nothing declares makes no queue."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_tenantqueue import ConcurrentJobMonitor, task
from django_tenantqueue.exceptions import InvalidOption, UnknownQueue
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.queues import forget_queues
from tests.factories import make_job, make_queue
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
STRICT = {"STRICT_QUEUES": True, "DECLARED_QUEUES": ["imports", "region-*"]}


@pytest.fixture(autouse=True)
def strict():
    forget_queues()
    with override_settings(TENANTQUEUE=STRICT):
        yield
    forget_queues()


@task(name="tests.strict", queue="declared-reports")
def declare() -> None:
    """Name a queue."""


def test_queue_that_nothing_names_is_refused_with_near_names():
    make_queue("acme", "archive-reports")

    with pytest.raises(UnknownQueue) as caught:
        noop.using(tenant="acme", queue="declared-report").delay()

    message = str(caught.value)
    assert "tenant 'acme' has no queue 'declared-report', and STRICT_QUEUES creates only" in message
    assert "Did you mean 'declared-reports'" in message
    assert "'archive-reports'" in message
    assert isinstance(caught.value, InvalidOption)
    assert not Job.objects.exists()
    assert not TenantQueue.objects.filter(name="declared-report").exists()


def test_no_name_is_guessed_when_none_is_near():
    with pytest.raises(UnknownQueue) as caught:
        noop.using(tenant="acme", queue="zzzzzzzz").delay()

    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "queue", [None, "default", "admin", "imports", "region-eu", "declared-reports"]
)
def test_queue_that_is_named_is_made_at_its_first_use(queue):
    job = noop.using(tenant="acme", queue=queue).delay()

    assert job.queue.name == (queue or "default")


def test_queue_that_an_operator_has_made_takes_jobs_of_its_tenant_alone():
    make_queue("acme", "special")

    assert noop.using(tenant="acme", queue="special").delay().pk
    with pytest.raises(UnknownQueue):
        noop.using(tenant="globex", queue="special").delay()


@pytest.mark.parametrize("pattern", ["region-", "xregion-eu", "IMPORTS"])
def test_pattern_names_whole_names(pattern):
    if pattern == "region-":  # * may stand for nothing
        assert noop.using(tenant="acme", queue=pattern).delay().pk
        return
    with pytest.raises(UnknownQueue):
        noop.using(tenant="acme", queue=pattern).delay()


def test_other_ways_into_a_queue_are_as_strict():
    job = make_job(make_queue("acme", "default"))

    with pytest.raises(UnknownQueue):
        noop.using(tenant="acme", queue="typo").enqueue_many([()])
    with pytest.raises(UnknownQueue):
        control.change_queue([job.pk], tenant="acme", queue="typo")
    with pytest.raises(UnknownQueue):
        ConcurrentJobMonitor.objects.start(
            "m", [noop.using(queue="typo").call()], tenant="acme", parallel=1
        )


@override_settings(TENANTQUEUE={})
def test_any_name_makes_a_queue_when_settings_are_not_strict():
    assert noop.using(tenant="acme", queue="declared-report").delay().pk
