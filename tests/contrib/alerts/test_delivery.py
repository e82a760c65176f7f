"""Messages are delivered once after a receiver was down, with a real server for each channel."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import django
import pytest
from django.db.models import F
from django.utils import timezone

from django_tenantqueue.contrib.alerts.check import check_rules
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import AlertRule
from django_tenantqueue.models import Job
from django_tenantqueue.operations.erasure import erase_tenant
from django_tenantqueue.testing import run_pending
from tests.factories import make_jobs, make_queue
from tests.process.receivers import SECRET, HttpReceiver, Mailbox, http_receiver, smtp_receiver

pytestmark = pytest.mark.django_db
DELIVERIES = "django_tenantqueue.alerts.deliver"


@pytest.fixture
def receiver(settings: Any) -> Iterator[HttpReceiver]:
    settings.TENANTQUEUE = {"HTTP": {"ALLOWED_HOSTS": ["127.0.0.1"]}}
    with http_receiver() as made:
        yield made


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """A mailbox to which this process sends its e-mails."""
    with smtp_receiver() as made:
        backend = "django.core.mail.backends.smtp.EmailBackend"
        if django.VERSION >= (6, 1):
            options = {"host": "127.0.0.1", "port": made.port}
            settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": options}}
        else:
            settings.EMAIL_BACKEND = backend
            settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", made.port
        yield made


def open_alert(*tenants: str) -> None:
    """Find that a job of a queue waits for too long, of each tenant."""
    moment = timezone.now() - timedelta(minutes=10)
    for tenant in tenants or ["acme"]:
        queue = make_queue(tenant, "slow", paused=True)
        make_jobs(queue, 1, created_at=moment, run_at=moment)
    AlertRule.objects.update(next_at=moment)
    check_rules("default")


def let_pass(seconds: int, step: int = 5) -> None:
    """Let time pass for the jobs that wait for another attempt, and run them when they are due."""
    for _ in range(0, seconds, step):
        waiting = Job.objects.filter(task=DELIVERIES, state="scheduled")
        waiting.update(run_at=F("run_at") - timedelta(seconds=step))
        run_pending()


def test_message_is_delivered_once_when_both_receivers_were_down_for_over_a_minute(
    receiver: HttpReceiver, mailbox: Mailbox
) -> None:
    make_alert_rule(
        "slow",
        "queue_late",
        webhook_url=receiver.url,
        webhook_secret=SECRET,
        emails="ops@example.com",
    )
    receiver.down()
    mailbox.down()
    open_alert()
    run_pending()
    let_pass(40)  # no connection is accepted
    receiver.status, mailbox.answer = 503, "451 Try again later"
    receiver.up()
    mailbox.up()
    let_pass(50)  # each request is refused
    assert (receiver.messages, mailbox.mails) == ({}, [])
    assert receiver.requests
    assert mailbox.refused
    jobs = list(Job.objects.filter(task=DELIVERIES).order_by("pk"))
    assert [job.state for job in jobs] == ["scheduled", "scheduled"]
    assert all(job.attempt >= 4 for job in jobs)

    receiver.status, mailbox.answer = 204, "250 OK"
    let_pass(120)

    assert receiver.told == [("slow", "open", "acme / slow")]
    assert mailbox.subjects == ["slow: 1 open"]
    assert [job.refresh().state for job in jobs] == ["success", "success"]
    (message,) = receiver.messages
    assert set(receiver.requests) == {message}  # each attempt has the id of its message
    assert mailbox.mails[0]["Message-ID"] == f"<{message}@django-tenantqueue>"
    down, refused = ("no connection", "Connection refused"), ("answered 503", "Try again later")
    for job, texts in zip(jobs, zip(down, refused, strict=True), strict=True):
        assert all(text in str(job.errors) for text in texts)
        assert "token" not in str(job.errors)
    requests = len(receiver.requests)

    check_rules("default", timezone.now() + timedelta(minutes=5))
    let_pass(3600, step=900)

    assert (len(receiver.requests), len(mailbox.mails)) == (requests, 1)
    assert Job.objects.filter(task=DELIVERIES).count() == 2


def test_message_that_waits_leaves_out_alerts_that_are_gone(caplog: Any) -> None:
    make_alert_rule("slow", "queue_late", log=True)
    open_alert("acme", "zebra")
    erase_tenant("acme", using="default")
    run_pending()
    assert "OPEN zebra / slow" in caplog.text
    assert "acme" not in caplog.text
    caplog.clear()

    open_alert("acme")
    erase_tenant("acme", using="default")
    run_pending()

    assert "open" not in caplog.text
    states = Job.objects.filter(task=DELIVERIES).values_list("state", flat=True)
    assert set(states) == {"success"}
