"""The end of a job is posted to its `callback_url`: signed, once, whatever the end."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from benchmarks.receiver import Reply
from django_tenantqueue import ConcurrentJobMonitor, task
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption
from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.testing import eager, run_pending
from tests.testapp.tasks import add, fail, noop

from .conftest import LOCAL, Endpoint, local

pytestmark = pytest.mark.django_db
KEY = b"0123456789abcdef01234567"
POST_END = "django_tenantqueue.http.post_end"


def secrets(tenant: str) -> list[str]:
    return ["whsec_" + base64.b64encode(KEY).decode()] if tenant == "acme" else []


def no_hosts(tenant: str) -> list[str]:
    return []


def posted(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [json.loads(received.body) for received in endpoint.received]


def test_success_is_posted_with_the_status_of_the_job(endpoint: Endpoint) -> None:
    job = add.using(tenant="acme", callback_url=endpoint.url).delay(1, 2)

    run_pending()

    (message,) = posted(endpoint)
    assert message["type"] == "job.success"
    assert message["data"]["id"] == job.pk
    assert message["data"]["state"] == "success"
    assert message["data"]["result"] == 3
    assert message["timestamp"] == message["data"]["finished_at"]
    callback = Job.objects.get(task=POST_END)
    assert (callback.state, callback.previous_id) == ("success", job.pk)
    assert callback.queue.tenant == "acme"


def test_error_is_posted_after_the_last_attempt_without_a_traceback(endpoint: Endpoint) -> None:
    job = fail.using(callback_url=endpoint.url, max_attempts=2).delay()

    run_pending()
    assert posted(endpoint) == []
    control.run_now([job.pk])
    run_pending()

    (message,) = posted(endpoint)
    assert message["type"] == "job.error"
    assert message["data"]["error"]
    assert "Traceback" not in json.dumps(message)


def test_job_that_was_retried_meanwhile_is_posted_when_it_ends(endpoint: Endpoint) -> None:
    job = noop.using(callback_url=endpoint.url).delay()
    control.cancel([job.pk])
    control.retry([job.pk])
    control.change_run_at([job.pk], timezone.now() + timedelta(hours=1))

    run_pending()

    assert posted(endpoint) == []
    control.cancel([job.pk])
    run_pending()
    assert [message["type"] for message in posted(endpoint)] == ["job.cancelled"]


def test_cancellation_is_posted(endpoint: Endpoint) -> None:
    job = noop.using(callback_url=endpoint.url).delay()

    control.cancel([job.pk])
    run_pending()

    assert [message["type"] for message in posted(endpoint)] == ["job.cancelled"]


def test_public_text_stands_in_place_of_the_message(endpoint: Endpoint, settings: Any) -> None:
    settings.TENANTQUEUE = {**LOCAL, "STATUS_ERROR": "It failed."}
    fail.using(callback_url=endpoint.url, max_attempts=1).delay()

    run_pending()

    (message,) = posted(endpoint)
    assert message["data"]["error"] == "It failed."


def test_request_is_signed_with_the_secrets_of_the_tenant(
    endpoint: Endpoint, settings: Any
) -> None:
    settings.TENANTQUEUE = local(SECRETS=f"{__name__}.secrets")
    endpoint.replies = [Reply(503), Reply()]
    noop.using(tenant="acme", callback_url=endpoint.url).delay()
    run_pending()
    callback = Job.objects.get(task=POST_END)
    assert callback.state == "scheduled"
    control.run_now([callback.pk])
    run_pending()

    first, second = endpoint.received
    assert first.webhook_id == second.webhook_id == f"job_{callback.pk}"
    signed = f"{second.webhook_id}.{second.headers['webhook-timestamp']}.".encode() + second.body
    expected = base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
    assert second.headers["webhook-signature"] == f"v1,{expected}"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.2/x",
        "http://169.254.169.254/x",
        "http://internal/x",
        "ftp://127.0.0.1/x",
        "http://eve:secret@127.0.0.1/x",
        "nonsense",
    ],
)
def test_url_that_may_not_be_called_is_refused_at_the_enqueue(endpoint: Endpoint, url: str) -> None:
    with pytest.raises(InvalidArgument, match="callback_url: ") as caught, transaction.atomic():
        noop.using(callback_url=url).delay()

    assert "secret" not in str(caught.value)
    assert not Job.objects.exists()


def test_hosts_of_the_tenant_are_asked_at_the_enqueue(endpoint: Endpoint) -> None:
    settings = local(TENANT_HOSTS=f"{__name__}.no_hosts")
    with override_settings(TENANTQUEUE=settings), pytest.raises(InvalidArgument):
        noop.using(tenant="acme", callback_url=endpoint.url).delay()


def test_host_is_checked_as_dns_has_it(settings: Any) -> None:
    settings.TENANTQUEUE = {"HTTP": {"ALLOWED_HOSTS": ["xn--bcher-kva.example"]}}
    noop.using(callback_url="https://bücher.example/").delay()
    settings.TENANTQUEUE = {"HTTP": {"ALLOWED_HOSTS": ["*"]}}
    with pytest.raises(InvalidArgument, match=r"127\.0\.0\.1"), transaction.atomic():
        noop.using(callback_url="https://１２７.0.0.1/").delay()


@pytest.mark.parametrize("value", [7, "\0", b"http://x"])
def test_url_that_is_no_text_is_an_error_at_the_option(value: Any) -> None:
    with pytest.raises(InvalidOption):
        noop.using(callback_url=value)


def test_it_goes_with_what_else_follows_and_with_bulk_and_monitors(endpoint: Endpoint) -> None:
    noop.using(on_end=noop.call(), on_success=noop.call(), callback_url=endpoint.url).delay()
    noop.using(callback_url=endpoint.url).enqueue_many([(), ()])
    noop.using(callback_url=endpoint.url, session="s").delay()
    details = [noop.using(callback_url=endpoint.url).call()]
    ConcurrentJobMonitor.objects.start("m", details, tenant="acme", parallel=1)

    run_pending()

    assert [message["type"] for message in posted(endpoint)] == ["job.success"] * 5


@task(name="tests.end.declared", callback_url="https://hooks.example/x")
def declared() -> None:
    """Do nothing."""


def test_task_may_declare_it_and_a_call_may_leave_it_out(endpoint: Endpoint) -> None:
    declared.delay()
    declared.using(callback_url=None).delay()

    assert Job.objects.filter(follow_ups__isnull=False).count() == 1


def test_it_is_posted_in_eager_mode_too(endpoint: Endpoint) -> None:
    with eager():
        noop.using(callback_url=endpoint.url).delay()

    assert [message["type"] for message in posted(endpoint)] == ["job.success"]
