"""What a monitor refuses, and what it says then."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from django_tenantqueue.exceptions import (
    InvalidArgument,
    InvalidOption,
    NotAllowed,
    QueueRetired,
)
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
    TenantQueue,
)
from tests.operations.monitors import start
from tests.testapp.models import Plain, Report
from tests.testapp.tasks import add, echo, noop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parallel": -1}, "parallel=-1: it must be an int from 0"),
        ({"parallel": True}, "parallel=True"),
        ({"interval": -1}, "interval=-1: it must be seconds or a timedelta"),
        ({"interval": timedelta(days=2)}, "from 0 to a day"),
        ({"priority": "high"}, "priority='high'"),
        ({"stop_after_failures": 0}, "stop_after_failures=0: it must be an int from 1"),
        ({"session": ""}, "session=''"),
        ({"queue": ""}, "queue=''"),
        ({"details": [noop.using(session="s").call()]}, "a detail has no session of its own"),
        ({"details": [noop.using(tenant="zeta").call()]}, "belong to its tenant, 'acme'"),
        (
            {"details": [noop.using(run_at=timedelta(1)).call()]},
            "a monitor decides when its details",
        ),
    ],
)
def test_bad_option_is_refused_at_the_call(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        start(**{"tenant": "acme", **options})
    assert not ConcurrentJobMonitor.objects.exists()


@pytest.mark.parametrize(
    ("details", "message"),
    [
        (7, "details=7: give task.call"),
        ([7], r"details\[0\] is 7"),
        ([(1, 2)], "names the method 2: it must be a str"),
        ([(Report, "count", "pdf")], "wrong arguments"),
        ([(Report, "nothing")], "has no method 'nothing'"),
        ([echo.call(object())], "argument 1 is of type object"),
        ([(Report.objects.all(), "nothing")], "has no method 'nothing'"),
    ],
)
def test_bad_detail_is_refused_at_the_call(details: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        start(details)


def test_bad_callback_is_refused_at_the_call() -> None:
    with pytest.raises(InvalidArgument, match="on_end is 'x'"):
        start(on_end="x")


def test_queryset_alone_is_no_detail() -> None:
    with pytest.raises(InvalidArgument, match="<Report queryset>"):
        start(Report.objects.all())


def test_wrong_arguments_are_refused_at_the_call() -> None:
    with pytest.raises(TypeError, match=r"tests\.testapp\.tasks\.add: missing"):
        add.call()


@pytest.mark.parametrize("form", ["instance", "queryset", "class", "callback"])
def test_wrong_arguments_of_methods_are_refused_at_the_call(form: str) -> None:
    report = Report.objects.create(title="a")
    what: dict[str, Any] = {
        "instance": {"details": [(report, "execute", ("pdf", 2))]},
        "queryset": {"details": [(Report.objects.all(), "execute", ("pdf", 2))]},
        "class": {"details": [(Report, "count", (1, 2))]},
        "callback": {"on_end": (report, "execute", (), {"sort": "pdf"})},
    }
    with pytest.raises(TypeError, match=r"Report\.(execute|count): "):
        start(**what[form])
    assert not Job.objects.exists()


def test_methods_that_may_not_run_are_refused() -> None:
    plain = Plain.objects.create(title="a")
    with pytest.raises(NotAllowed, match=r"models\.Plain\.execute may not be run"):
        start([(plain, "execute")])
    with pytest.raises(NotAllowed):
        start([(Plain.objects.all(), "execute")])


def test_retired_queue_takes_no_details() -> None:
    TenantQueue.objects.create(tenant="acme", name="old", retired=True)
    with pytest.raises(QueueRetired):
        start(tenant="acme", queue="old")


def test_monitor_goes_with_the_callers_transaction() -> None:
    with transaction.atomic():
        start()
        transaction.set_rollback(True)

    assert not ConcurrentJobMonitor.objects.exists()
    assert not Job.objects.exists()


def test_all_runs_here_and_now_when_eager(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "EAGER": True}
    report = Report.objects.create(title="a")

    ConcurrentJobMonitor.objects.start(
        "now", [(report, "execute")], parallel=1, on_end=(report, "execute")
    )

    report.refresh_from_db()
    assert report.rows >= 1
    assert not Job.objects.exists()
