"""Messages are signed, escaped, and sent to where the rule says, and nowhere else."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.utils import timezone
from standardwebhooks import Webhook

from django_tenantqueue.contrib.alerts.channels import log, post
from django_tenantqueue.contrib.alerts.channels import mail as send_mail
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.exceptions import DeliveryFailed
from django_tenantqueue.contrib.alerts.messages import make_message, slack_of, title_of
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.alerts.services import delete_alert_rules
from django_tenantqueue.exceptions import InvalidOption, Unsupported
from django_tenantqueue.testing import run_pending
from django_tenantqueue.webhook_signatures import signed_headers
from tests.process.receivers import SECRET, HttpReceiver, http_receiver

pytestmark = pytest.mark.django_db


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


@pytest.fixture(autouse=True)
def _receivers_here(settings: Any) -> None:
    settings.TENANTQUEUE = {"HTTP": {"ALLOWED_HOSTS": ["127.0.0.1", "*.example"]}}


def rule_of(**columns: Any) -> AlertRule:
    return make_alert_rule("rule", "queue_late", **columns)


def message_of(rule: AlertRule, label: str = "acme / mail") -> dict[str, Any]:
    now = timezone.now()
    alert = Alert(rule=rule, key="1", label=label, text="It waits.", opened_at=now, seen_at=now)
    return make_message(rule, [alert], now=now)


def test_signature_is_that_of_standard_webhooks() -> None:
    rule = rule_of(webhook_secret=SECRET)
    now = timezone.now()

    headers = signed_headers(
        "msg_1", b'{"text": "\xc3\xa4"}', int(now.timestamp()), [rule.signing_key]
    )

    assert headers["webhook-signature"] == Webhook(SECRET).sign("msg_1", now, '{"text": "ä"}')


def test_webhook_gets_the_signed_message(receiver: HttpReceiver) -> None:
    rule = rule_of(webhook_url=receiver.url, webhook_secret=SECRET, tenant="acme")
    message = message_of(rule)

    post(rule, message)

    body = receiver.messages[message["id"]]
    assert (body["type"], body["timestamp"]) == ("tenantqueue.alerts", message["at"])
    assert (body["data"]["rule"], body["data"]["tenant"]) == ("rule", "acme")
    assert [alert["object"] for alert in body["data"]["alerts"]] == ["acme / mail"]


def test_redirect_is_not_followed(receiver: HttpReceiver) -> None:
    rule = rule_of(webhook_url=receiver.url, webhook_secret=SECRET)
    receiver.status = 302

    with pytest.raises(DeliveryFailed, match=r"http://127.0.0.1/… answered 302"):
        post(rule, message_of(rule))

    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "hosts",
    [{}, {"TENANT_HOSTS": "tests.contrib.alerts.test_channels.hosts_of"}],
    ids=["all", "own"],
)
def test_webhook_calls_no_host_that_http_jobs_may_not(
    receiver: HttpReceiver, settings: Any, hosts: dict[str, str]
) -> None:
    allowed = ["127.0.0.1"] if hosts else ["*"]
    settings.TENANTQUEUE = {"HTTP": {"ALLOWED_HOSTS": allowed, **hosts}}
    rule = rule_of(webhook_url=receiver.url, webhook_secret=SECRET, tenant="acme")

    with pytest.raises(DeliveryFailed, match=r"http://127.0.0.1/… may not be called") as caught:
        post(rule, message_of(rule))

    assert "token" not in str(caught.value)
    assert receiver.requests == []


def hosts_of(tenant: str) -> list[str]:
    """Return the hosts of a tenant: see TENANT_HOSTS."""
    return [f"{tenant}.example"]


def test_name_with_a_private_address_is_not_called(receiver: HttpReceiver, settings: Any) -> None:
    settings.TENANTQUEUE = {"HTTP": {"ALLOWED_HOSTS": ["*"]}}
    rule = rule_of(webhook_url=f"http://localhost:{receiver.port}/hook/token/")

    with pytest.raises(DeliveryFailed, match="which is not public"):
        post(rule, message_of(rule))

    assert receiver.requests == []


def test_proxy_of_the_environment_is_not_used(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        rule = rule_of(webhook_url=receiver.url, webhook_secret=SECRET)

        post(rule, message_of(rule))

        assert (len(receiver.requests), proxy.requests) == (1, [])


def test_webhook_names_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "django_tenantqueue.contrib.http.client", raising=False)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    rule = rule_of(webhook_url="https://hooks.example/")

    with pytest.raises(Unsupported, match=r"pip install 'django-tenantqueue\[http\]'"):
        post(rule, message_of(rule))


def test_receiver_that_is_down_is_an_error_without_its_path(receiver: HttpReceiver) -> None:
    rule = rule_of(webhook_url=receiver.url)
    receiver.down()

    with pytest.raises(DeliveryFailed, match="cannot be reached") as caught:
        post(rule, message_of(rule))

    receiver.up()
    assert "token" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_slack_gets_text_that_mentions_no_one() -> None:
    text = json.loads(slack_of(message_of(rule_of(), "<!channel> & <@U1>")))["text"]

    assert "&lt;!channel&gt; &amp; &lt;@U1&gt;: It waits." in text
    assert "<" not in text


def test_subject_is_one_line() -> None:
    rule = rule_of(emails="ops@example.com, dev@example.com")
    rule.name = "a\r\nBcc: x@example.com"
    message = message_of(rule, "b\nc")

    send_mail(rule, message)

    sent = mail.outbox[0]
    assert sent.subject == title_of(message) == "a Bcc: x@example.com: 1 open"
    assert sent.to == ["ops@example.com", "dev@example.com"]
    assert sent.message()["Message-ID"] == f"<{message['id']}@django-tenantqueue>"
    assert "OPEN b c: It waits." in sent.body


def test_log_has_open_alerts_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    rule = rule_of(log=True)

    with caplog.at_level(logging.INFO, "django_tenantqueue.alerts"):
        log(rule, message_of(rule))
        log(rule, make_message(rule, now=timezone.now(), test=True))

    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("webhook_url", "file:///etc/passwd"),
        ("webhook_url", "https://user:password@example.com/"),
        ("webhook_url", "https://example.com/\nX: y"),
        ("webhook_url", "https://example.com:99999/"),
        ("webhook_url", "https:///path"),
        ("webhook_secret", "whsec_c2hvcnQ="),
        ("webhook_secret", "whsec_not base64"),
        ("emails", "ops@example.com, nonsense"),
        ("time_zone", "Nowhere"),
        ("quiet_from", "22:00"),
        ("max_per_hour", 0),
    ],
)
def test_rule_with_a_wrong_column_is_refused(column: str, value: Any) -> None:
    columns = {"kind": "queue_late", column: value}

    with pytest.raises((ValidationError, InvalidOption)):
        make_alert_rule("rule", **columns)

    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"kind": "session_halted", "task": "a.task"}, "Leave this empty"),
        ({"kind": "monitor_stopped", "queue": "mail"}, "Leave this empty"),
        ({"kind": "queue_backlog", "task": "a.task", "threshold": 100_000}, "at most 100,000 jobs"),
    ],
)
def test_rule_with_columns_that_do_not_go_together_is_refused(
    columns: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValidationError, match=text):
        make_alert_rule("rule", **columns)


def test_command_sends_a_test_and_tells_how_each_channel_went(receiver: HttpReceiver) -> None:
    rule = rule_of(webhook_url=receiver.url, webhook_secret=SECRET, emails="ops@example.com")
    output, errors = StringIO(), StringIO()

    call_command("tenantqueue", "alerts", "test", "rule", stdout=output)
    assert output.getvalue() == "webhook: sent\nemail: sent\n"
    assert next(iter(receiver.messages.values()))["data"]["test"] is True
    assert mail.outbox[0].subject == "rule: test"

    receiver.status = 500
    with pytest.raises(CommandError, match="was not sent"):
        call_command("tenantqueue", "alerts", "test", str(rule.pk), stdout=output, stderr=errors)
    assert "webhook: DeliveryFailed: http://127.0.0.1/… answered 500" in errors.getvalue()


def test_command_refuses_a_rule_that_it_cannot_name_or_test() -> None:
    for tenant in ("acme", "other"):
        make_alert_rule("rule", "queue_late", tenant=tenant)
    alone = make_alert_rule("alone", "queue_late")

    for name, text in (
        ("unknown", "no alert rule"),
        ("rule", "Several alert rules"),
        (str(alone.pk), "no recipients"),
    ):
        with pytest.raises(CommandError, match=text):
            call_command("tenantqueue", "alerts", "test", name)


def test_delivery_of_a_deleted_rule_fails_for_good() -> None:
    from django_tenantqueue.contrib.alerts.delivery import enqueue_test

    rule = rule_of(log=True)
    (job,) = enqueue_test("default", rule)
    delete_alert_rules([rule.pk])

    run_pending()

    assert job.refresh().state == "error"
    assert "was deleted" in str(job.errors)
