"""Looking needs the view permission, doing the change permission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from django_tenantqueue.models import Session, TenantQueue, Worker
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import make_duty, make_job, make_queue, make_worker, state_of
from tests.operations.monitors import start
from tests.testapp.tasks import fail, noop

from .conftest import text_of, url_of

Operator = Callable[..., Client]


def test_without_permission_nothing_is_shown(operator: Operator) -> None:
    client = operator()
    job = make_job()

    for model in ("job", "tenantqueue", "worker", "duty"):
        assert client.get(url_of(model, "changelist")).status_code == 403
    assert client.get(url_of("job", "change", job.pk)).status_code == 403


def test_who_may_only_look_sees_no_buttons(operator: Operator) -> None:
    client = operator("view_job", "view_tenantqueue", "view_worker", "view_duty")
    job = make_job(state=State.ERROR)
    worker = make_worker()
    make_duty()

    pages = [
        client.get(url_of("job", "changelist")),
        client.get(url_of("job", "change", job.pk)),
        client.get(url_of("tenantqueue", "changelist")),
        client.get(url_of("tenantqueue", "change", job.queue_id)),
        client.get(url_of("worker", "changelist")),
        client.get(url_of("worker", "change", worker.pk)),
        client.get(url_of("duty", "changelist")),
    ]

    for response in pages:
        content = response.content.decode()
        assert response.status_code == 200
        for forbidden in ('name="_retry"', 'name="action"', 'name="_save"', 'name="num_slots"'):
            assert forbidden not in content


def test_who_may_only_look_can_do_nothing(operator: Operator) -> None:
    client = operator("view_job", "view_tenantqueue", "view_worker")
    queue = make_queue(num_slots=3)
    job = make_job(queue, state=State.ERROR)
    worker = make_worker()

    def attempt(address: str, **data: Any) -> None:
        client.post(address, data)

    attempt(url_of("job", "change", job.pk), _retry="1")
    attempt(
        url_of("job", "changelist"), action="retry_selected", _selected_action=job.pk, index="0"
    )
    attempt(
        url_of("tenantqueue", "changelist"),
        action="pause_selected",
        _selected_action=queue.pk,
        index="0",
    )
    attempt(url_of("tenantqueue", "change", queue.pk), num_slots="9", weight="1")
    for action in ("drain_selected", "stop_selected"):
        attempt(
            url_of("worker", "changelist"), action=action, _selected_action=worker.pk, index="0"
        )

    assert state_of(job.pk) == State.ERROR
    assert TenantQueue.objects.filter(pk=queue.pk, num_slots=3, paused=False).exists()
    assert Worker.objects.filter(pk=worker.pk, draining=False, stopping=False).exists()


def test_who_may_view_workers_alone_sees_none_of_their_jobs(operator: Operator) -> None:
    worker = make_worker()
    make_job(state=State.RUNNING, task="reports.build", worker_id=worker.pk)

    text = text_of(operator("view_worker").get(url_of("worker", "change", worker.pk)))

    assert "You are not allowed to view jobs." in text
    assert "reports.build" not in text


def test_who_may_view_monitors_alone_sees_none_of_their_jobs(operator: Operator) -> None:
    monitor = start([fail.using(max_attempts=1).call()], on_end=noop.call(), keep_open=True)
    run_pending()
    error = monitor.details().get().last_error
    assert error is not None
    url = url_of("concurrentjobmonitor", "change", monitor.pk)
    secrets = (fail.name, noop.name, error["message"])

    for part in ("", "?details=failed"):
        response = operator("view_concurrentjobmonitor").get(url + part)
        text, html = text_of(response), response.content.decode().replace("<wbr>", "")
        assert text.count("You are not allowed to view jobs.") == 2
        assert not [secret for secret in secrets if secret in html]
        assert "failed 1" in text  # its counts are the monitor's own
    response = operator("view_concurrentjobmonitor", "view_job").get(url)
    allowed = response.content.decode().replace("<wbr>", "")
    assert not [secret for secret in secrets if secret not in allowed]


@pytest.mark.parametrize("model", ["session", "userlimit"])
def test_who_may_view_lines_alone_sees_none_of_their_jobs(operator: Operator, model: str) -> None:
    option = "session" if model == "session" else "limit_user"
    for _ in range(2):
        noop.using(**{option: "7"}).delay()
    run_commit_hooks("default")
    line = Session.objects.get(gate_key__endswith="7")
    url = url_of(model, "change", line.pk)

    text = text_of(operator(f"view_{model}").get(url))
    allowed = operator(f"view_{model}", "view_job").get(url).content.decode()

    assert "You are not allowed to view jobs." in text
    assert noop.name not in text
    assert noop.name in allowed.replace("<wbr>", "")


def test_change_permission_is_enough_to_act(operator: Operator) -> None:
    client = operator("view_job", "change_job")
    job = make_job(state=State.ERROR)

    response = client.post(url_of("job", "change", job.pk), {"_retry": "1"}, follow=True)

    assert "made ready again" in text_of(response)
    assert state_of(job.pk) == State.READY


@pytest.mark.django_db
def test_anonymous_visitors_are_sent_to_the_login(client: Client) -> None:
    job = make_job(state=State.ERROR)

    response = client.post(url_of("job", "change", job.pk), {"_retry": "1"})

    assert response.status_code == 302
    assert "login" in response.url
    assert state_of(job.pk) == State.ERROR
