"""The progress of a monitor on users' own pages: that of its callback."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.template import Context, Template
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_tenantqueue.link_tokens import sign_job_id
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.operations.monitors import run_some
from tests.testapp.tasks import echo, fail, noop

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]
HOSTILE = "<script>alert(1)</script>"


def start(count: int = 10, **options: Any) -> ConcurrentJobMonitor:
    details = [noop.call() for _ in range(count)]
    monitor = ConcurrentJobMonitor.objects.start("installs", details, parallel=3, **options)
    run_commit_hooks("default")
    return monitor


def render(monitor: ConcurrentJobMonitor | None, **options: Any) -> str:
    template = Template("{% load tenantqueue %}{% job_progress monitor title=title %}")
    return template.render(Context({"monitor": monitor, "title": "", **options}))


def status(*monitors: ConcurrentJobMonitor) -> list[dict[str, Any]]:
    tokens = [sign_job_id(monitor.anchor_id) for monitor in monitors]
    answer = Client().post(reverse("tenantqueue:statuses"), {"token": tokens})
    return [entry["job"] for entry in answer.json()["jobs"]]


def test_bar_shows_the_share_of_details_that_have_ended() -> None:
    monitor = start()
    run_some(4)

    html = render(monitor)

    assert "installs" in html
    assert 'data-state="running"' in html
    assert 'value="40"' in html
    assert "4 / 10" in html
    (job,) = status(monitor)
    assert job["state"] == "held"
    assert job["progress"] == {"done": 4, "total": 10, "percent": 40, "message": "4 / 10"}


def test_bar_waits_while_no_detail_has_ended() -> None:
    html = render(start())

    assert 'data-state="held"' in html
    assert ">waiting<" in html
    assert "0 / 10" in html


def test_bar_is_full_while_the_callback_waits() -> None:
    monitor = start(on_end=echo.call("x"))
    run_some(10)

    (job,) = status(monitor)

    assert job["state"] == "ready"
    assert job["progress"]["percent"] == 100
    assert 'value="100"' in render(monitor)


@pytest.mark.parametrize(("callback", "state"), [(echo.call("x"), "success"), (fail, "error")])
def test_bar_ends_with_the_callback(callback: Any, state: str) -> None:
    on_end = fail.using(max_attempts=1).call() if callback is fail else callback
    monitor = start(on_end=on_end)
    run_pending()

    html = render(monitor)

    assert f'data-state="{state}"' in html
    assert "data-token" not in html


def test_bar_of_a_cancelled_monitor_says_so() -> None:
    monitor = start()
    cancel_monitor(monitor.pk)

    assert 'data-state="cancelled"' in render(monitor)


def test_detail_and_ordinary_job_have_no_progress_of_a_monitor() -> None:
    monitor = start()
    detail = monitor.details().first()
    assert detail is not None
    alone = noop.delay()

    tokens = [sign_job_id(detail.pk), sign_job_id(alone.pk)]
    answer = Client().post(reverse("tenantqueue:statuses"), {"token": tokens})

    assert [entry["job"]["progress"]["done"] for entry in answer.json()["jobs"]] == [None, None]


def test_one_status_of_a_callback_has_the_progress() -> None:
    monitor = start()
    job = Job.objects.get(pk=monitor.anchor_id)

    answer = Client().get(job.status_url)

    assert answer.json()["progress"]["total"] == 10


def test_nothing_is_shown_without_a_monitor_or_its_callback() -> None:
    monitor = start(0)
    Job.objects.filter(pk=monitor.anchor_id).delete()

    assert "tenantqueue-progress" not in render(monitor)
    assert "tenantqueue-progress" not in render(None)


def test_statuses_take_the_same_statements_for_many_monitors() -> None:
    few, many = [start(2)], [start(2) for _ in range(6)]
    counts = []
    for monitors in (few, many):
        with CaptureQueriesContext(connection) as queries:
            status(*monitors)
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_name_of_a_monitor_is_escaped() -> None:
    monitor = start()
    monitor.name = HOSTILE

    assert HOSTILE not in render(monitor)
