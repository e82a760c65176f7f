"""An HTTP job posts its payload and keeps the answer."""

from __future__ import annotations

import asyncio
import bisect
import json
import socket
import ssl
import sys
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp
import pytest
from django.utils import timezone
from django.utils.http import http_date
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from benchmarks.receiver import Reply
from django_tenantqueue import Placeholder
from django_tenantqueue.contrib.http import http_job
from django_tenantqueue.contrib.http.client import Client, _explained
from django_tenantqueue.exceptions import InvalidArgument
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.status.masking import MASK, mask_of_job
from django_tenantqueue.testing import run_pending
from tests import sample_tasks
from tests.factories import make_job
from tests.testapp.tasks import echo

from .conftest import LOCAL, Endpoint, local

OLD, NEW = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def secrets_of(tenant: str) -> list[str]:
    return {"acme": [NEW, OLD], "broken": ["whsec_?not base64?"]}.get(tenant, [])


def hosts_of(tenant: str) -> list[str] | None:
    return {"closed": ["hooks.example"], "open": ["127.0.0.0/8"]}.get(tenant)


def error_of(job: Job) -> tuple[str, str, str]:
    error = job.last_error
    assert error is not None
    return job.state, error["class"].rpartition(".")[2], error["message"]


@pytest.mark.parametrize(
    ("payload", "body"),
    [("a=1&b=é", "a=1&b=é".encode()), (None, b""), ({"n": 1}, b'{"n":1}'), (0, b"0")],
)
def test_text_is_posted_as_it_is_by_the_rule_of_fireworq(
    endpoint: Endpoint, payload: object, body: bytes
):
    endpoint.replies = [Reply(body=b'{"status": "success"}')]

    job = endpoint.send(payload, rule="fireworq")

    (request,) = endpoint.received
    assert request.body == body
    assert request.headers["content-type"] == "application/json"
    assert job.state == "success"


@pytest.mark.parametrize(("rule", "delay"), [("status", 900), ("fireworq", timedelta(minutes=15))])
def test_next_attempt_comes_after_the_delay_of_the_call(endpoint: Endpoint, rule: str, delay):
    endpoint.replies = [Reply(500, b'{"status": "failure"}')]

    job = endpoint.send(rule=rule, retry_delay=delay, request_timeout=timedelta(seconds=20))

    assert job.state == "scheduled"
    assert 890 < (job.run_at - timezone.now()).total_seconds() <= 900


def test_answer_names_the_next_attempt_before_the_delay_of_the_call(endpoint: Endpoint):
    endpoint.replies = [Reply(503, headers={"Retry-After": "70"})]

    job = endpoint.send(retry_delay=900)

    assert 60 < (job.run_at - timezone.now()).total_seconds() <= 70


def test_what_the_endpoint_said_is_kept_with_the_error(endpoint: Endpoint):
    endpoint.replies = [Reply(418, b'{"status": "permanent-failure", "message": "no tea"}')]

    job = endpoint.send(rule="fireworq")

    assert job.last_error is not None
    assert job.last_error["answer"] == {"status": 418, "message": "no tea"}


def test_answer_is_handed_on_and_a_result_is_posted(endpoint: Endpoint):
    endpoint.replies = [Reply(200, b'{"id": 7}'), Reply(200)]
    payload = {"was": Placeholder("result")}

    echo.using(
        tenant="acme",
        on_success=http_job.using(on_success=echo.call(Placeholder("result"))).call(
            endpoint.url, payload
        ),
    ).delay("x")
    *_, last = run_pending()

    assert json.loads(endpoint.received[0].body) == {"was": "x"}
    assert last.result == {"status": 200, "body": {"id": 7}}


# the request


def test_payload_is_posted_as_json(endpoint: Endpoint):
    endpoint.replies = [Reply(201, b'{"id": 7}')]

    job = endpoint.send({"sum": Decimal("1.50"), "on": datetime(2026, 1, 2, tzinfo=UTC)})

    (request,) = endpoint.received
    assert (request.method, request.path) == ("POST", "/hook")
    assert json.loads(request.body) == {"sum": "1.50", "on": "2026-01-02T00:00:00Z"}
    assert request.headers["content-type"] == "application/json"
    assert job.state == "success"
    assert job.result == {"status": 201, "body": {"id": 7}}


def test_placeholders_and_headers_are_sent(endpoint: Endpoint):
    payload = {"job": Placeholder("job_id"), "for": [Placeholder("tenant"), Placeholder("attempt")]}

    job = endpoint.send(payload, tenant="acme", headers={"X-Job": Placeholder("job_id")})

    (request,) = endpoint.received
    assert json.loads(request.body) == {"job": job.pk, "for": ["acme", 1]}
    assert request.headers["x-job"] == str(job.pk)


def test_values_of_secret_headers_are_masked_where_jobs_are_shown(endpoint: Endpoint):
    job = endpoint.send(headers={"Authorization": "Bearer hunter2", "X-Plain": "yes"})

    shown = mask_of_job(job).call(job.args)["kwargs"]["headers"]
    assert shown == {"Authorization": MASK, "X-Plain": "yes"}


def test_request_is_sent_at_once_in_eager_mode(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = {**LOCAL, "EAGER": True}

    job = http_job.delay(endpoint.url, {"n": 1})

    assert (job.result, len(endpoint.received)) == ({"status": 200, "body": {}}, 1)


def test_request_is_sent_when_a_wrapper_may_not_surround_coroutines(
    endpoint: Endpoint, settings: Any
):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "WRAPPERS": ["tests.sample_tasks.in_schema"]}
    sample_tasks.calls.clear()

    job = http_job.delay(endpoint.url)
    run_pending()

    assert (job.refresh().state, sample_tasks.calls) == ("success", [])


def test_job_may_be_a_detail_of_a_monitor(endpoint: Endpoint):
    details = [http_job.call(endpoint.url, {"n": number}) for number in range(3)]
    ConcurrentJobMonitor.objects.start("hooks", details, parallel=2)

    run_pending()

    assert sorted(json.loads(request.body)["n"] for request in endpoint.received) == [0, 1, 2]


@pytest.mark.parametrize(
    ("url", "arguments", "message"),
    [
        ("ftp://a.example/", {}, "must begin with https:// or http://"),
        ("/hook", {}, "must begin with https:// or http://"),
        ("http://", {}, "and a host"),
        ("https://a.example /", {}, "without spaces"),
        ("https://a.example\\@b.example/", {}, "without spaces, backslashes"),
        ("https://a.example:port/", {}, "host or port is malformed"),
        ("https://[::1/", {}, "host or port is malformed"),
        (b"https://a.example/", {}, "must be a str"),
        ("https://bob:hunter2@a.example/", {}, "'a.example' has a user or a password"),
        ("https://a.example/", {"payload": object}, "payload"),
        ("https://a.example/", {"payload": float("nan")}, "payload"),
        ("https://a.example/", {"rule": "body"}, "rule='body': it must be 'status' or 'fireworq'"),
        ("https://a.example/", {"request_timeout": 0}, "request_timeout=0: it must be sec"),
        ("https://a.example/", {"headers": ["a"]}, "it must be a dict"),
        ("https://a.example/", {"headers": {"a b": ""}}, "'a b' cannot be the name"),
        ("https://a.example/", {"headers": {"Host": "b"}}, "'Host' is set by the worker"),
        ("https://a.example/", {"headers": {"Webhook-Id": "b"}}, "is set by the worker"),
        ("https://a.example/", {"headers": {"Expect": "100-continue"}}, "'Expect' is set by"),
        ("https://a.example/", {"headers": {"Upgrade": "h2c"}}, "'Upgrade' is set by"),
        ("https://a.example/", {"headers": {"a": "b\r\nc: d"}}, "without line breaks"),
        ("https://a.example/", {"headers": {"a": 7}}, "must be a str"),
    ],
)
def test_request_is_refused_where_it_is_enqueued(db: None, url: Any, arguments: Any, message: str):
    with pytest.raises(InvalidArgument, match=message) as caught:
        http_job.delay(url, **arguments)

    assert "hunter2" not in str(caught.value)
    assert not Job.objects.exists()


def test_saved_model_is_refused_as_a_payload(db: None):
    with pytest.raises(InvalidArgument, match="payload: it cannot be sent as JSON"):
        http_job.delay("https://a.example/", {"job": make_job()})


def test_request_that_sql_has_put_in_is_checked_again(endpoint: Endpoint):
    name = http_job.name
    args = {"args": ["https://bob:hunter2@a.example/"]}
    job = make_job(task=name, source_method=name, args=args, is_async=True)

    run_pending()

    state, kind, message = error_of(job.refresh())
    assert (state, kind) == ("error", "Permanent")
    assert "hunter2" not in message


# the rules


@pytest.mark.parametrize(
    ("status", "state"), [*((status, "success") for status in (200, 202, 204, 299)), (410, "error")]
)
def test_status_of_success_and_gone_end_the_job(endpoint: Endpoint, status: int, state: str):
    endpoint.replies = [Reply(status, b"")]

    assert endpoint.send().state == state


@pytest.mark.parametrize("status", [301, 400, 404, 418, 429, 500, 503, 599])
def test_other_status_is_retried(endpoint: Endpoint, status: int):
    endpoint.replies = [Reply(status, b"not  now")]

    job = endpoint.send(url=endpoint.url + "?token=hunter2")

    state, kind, message = error_of(job)
    assert (state, kind, job.attempt) == ("scheduled", "HttpJobFailed", 1)
    assert f"/hook answered {status}" in message
    assert "not now" in message
    assert "hunter2" not in str(job.errors)


def test_status_that_is_permanent_ends_the_job(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(PERMANENT_STATUSES=[404])
    endpoint.replies = [Reply(404, b"what?")]

    state, kind, message = error_of(endpoint.send())

    assert (state, kind) == ("error", "HttpJobRejected")
    assert message.endswith("/hook answered 404 Not Found: what?")


@pytest.mark.parametrize(
    ("status", "said", "least", "most"),
    [
        (429, "120", 119, 121),
        (503, "DATE", 110, 121),
        (429, "999999999999", 3599, 3601),
        (503, "soon", 3, 7),
        (429, "0", 3, 7),
        (503, "Fri, 31 Dec 1999 23:59:59 GMT", 3, 7),
        (500, "120", 3, 7),
    ],
)
def test_retry_after_is_honoured_within_bounds(
    endpoint: Endpoint, status: int, said: str, least: float, most: float
):
    said = said.replace("DATE", http_date(timezone.now().timestamp() + 120))
    endpoint.replies = [Reply(status, headers={"Retry-After": said})]
    before = timezone.now()

    job = endpoint.send()

    wait = job.run_at - before
    assert timedelta(seconds=least) <= wait
    assert job.run_at - timezone.now() <= timedelta(seconds=most)


@pytest.mark.parametrize(
    ("body", "state", "message"),
    [
        (b'{"status": "success"}', "success", ""),
        (b'{"status": "failure", "message": "busy"}', "scheduled", "answered failure: busy"),
        (b'{"status": "permanent-failure"}', "error", "answered permanent-failure"),
        (b"<html>", "scheduled", "without a status of success"),
        (b'["success"]', "scheduled", "without a status of success"),
    ],
)
def test_body_decides_by_the_rule_of_fireworq(
    endpoint: Endpoint, body: bytes, state: str, message: str
):
    endpoint.replies = [Reply(500, body)]

    job = endpoint.send(rule="fireworq")

    assert job.state == state
    if message:
        assert message in error_of(job)[2]


# what is kept


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"", None),
        (b"fine", "fine"),
        (b'"\\u0000"', '"\\u0000"'),
        (b'"\\ud800"', '"\\ud800"'),
        (b"\x00\xff", "\\x00\ufffd"),
        (b"NaN", "NaN"),
        (b"1e999", "1e999"),
        (b"[" * 50_000, "[" * 50_000),
    ],
)
def test_any_body_can_be_kept(endpoint: Endpoint, body: bytes, kept: object):
    endpoint.replies = [Reply(body=body)]

    job = endpoint.send()

    assert job.result == {"status": 200, "body": kept}


def test_body_that_is_kept_as_json_can_be_read_by_those_who_are_deeper_in_the_stack(
    endpoint: Endpoint,
):
    deepest = bisect.bisect_left(range(10**6), True, key=_is_too_deep)
    endpoint.replies = [Reply(body=b"[" * depth + b"]" * depth) for depth in (300, deepest - 60)]

    assert isinstance(endpoint.send().result["body"], list)
    assert isinstance(endpoint.send().result["body"], str)


def _is_too_deep(depth: int) -> bool:
    try:
        json.loads("[" * depth + "]" * depth)
    except RecursionError:
        return True
    return False


def test_long_body_is_cut(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(MAX_BODY_BYTES=10)
    endpoint.replies = [Reply(body=b"x" * 1_000_000, cut=True)]  # the end is not waited for

    job = endpoint.send()

    assert job.result == {"status": 200, "body": "x" * 10, "body_is_cut": True}


def test_body_that_is_cut_before_its_status_is_named(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(MAX_BODY_BYTES=1000)
    endpoint.replies = [Reply(body=b'{"status": "success", "log": "%s"}' % (b"x" * 5000))]

    state, _, text = error_of(endpoint.send(rule="fireworq"))

    assert state == "scheduled"
    assert "which is longer than the 1,000 bytes that are read (TENANTQUEUE['HTTP']" in text
    assert "['MAX_BODY_BYTES']): " in text


# no answer


@pytest.mark.parametrize(
    ("reply", "arguments", "message"),
    [
        (Reply(after=None), {"request_timeout": 0.05}, "no answer within 0.05 s"),
        (Reply(body=b"{", cut=True), {}, "the connection was cut before the whole answer came"),
        (Reply(headers={"X-\x00": "1"}), {}, "the answer is not valid HTTP"),
    ],
)
def test_missing_answer_is_retried(endpoint: Endpoint, reply: Reply, arguments: Any, message: str):
    endpoint.replies = [reply]

    state, kind, text = error_of(endpoint.send(**arguments))

    assert (state, kind) == ("scheduled", "HttpJobFailed")
    assert text.endswith(f"/hook: {message}")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda url: "http://127.0.0.1:1/hook", "http://127.0.0.1:1/hook: no connection: "),
        (lambda url: url.replace("http", "https"), "/hook: the TLS handshake failed: "),
    ],
    ids=["closed port", "no TLS"],
)
def test_missing_connection_is_retried(endpoint: Endpoint, made: Any, said: str):
    state, kind, text = error_of(endpoint.send(url=made(endpoint.url)))

    assert (state, kind) == ("scheduled", "HttpJobFailed")
    assert said in text


def test_certificate_that_is_not_accepted_is_named():
    key = ("127.0.0.1", 443, True, True, None, None, None)
    wrong = ssl.SSLCertVerificationError("verify")
    wrong.verify_message = "certificate has expired"

    said = _explained(aiohttp.ClientConnectorCertificateError(key, wrong))

    assert said == "its certificate is not valid: certificate has expired"


def test_connection_that_takes_too_long_is_retried(
    endpoint: Endpoint, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    settings.TENANTQUEUE = local(CONNECT_TIMEOUT=0.05)
    given_up = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: given_up.wait(5) or [])
    close = Client.close

    async def give_up(client: Client) -> None:
        given_up.set()
        await close(client)

    monkeypatch.setattr(Client, "close", give_up)

    state, kind, text = error_of(endpoint.send(url="http://slow.example/hook"))

    assert (state, kind) == ("scheduled", "HttpJobFailed")
    assert text == "http://slow.example/hook: no connection within 0.05 s"


def test_missing_package_is_named(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "django_tenantqueue.contrib.http.client", None)

    state, kind, text = error_of(endpoint.send())

    assert (state, kind) == ("scheduled", "Unsupported")
    assert "pip install 'django-tenantqueue[http]'" in text


# signatures


def verify(endpoint: Endpoint, secret: str, number: int = 0) -> object:
    request = endpoint.received[number]
    return Webhook(secret).verify(request.body, dict(request.headers))


def test_request_is_signed_with_all_secrets_of_the_tenant(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(SECRETS=f"{__name__}.secrets_of")

    job = endpoint.send({"n": "ü"}, tenant="acme")

    assert verify(endpoint, OLD) == verify(endpoint, NEW) == {"n": "ü"}
    with pytest.raises(WebhookVerificationError):
        verify(endpoint, "whsec_" + "A" * 32)
    assert endpoint.received[0].webhook_id == f"job_{job.pk}"


def test_request_of_a_tenant_without_secrets_is_not_signed(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(SECRETS=f"{__name__}.secrets_of")

    endpoint.send(tenant="other")

    headers = endpoint.received[0].headers
    assert "webhook-signature" not in headers
    assert {"webhook-id", "webhook-timestamp"} <= set(headers)


def test_wrong_secret_is_not_shown(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(SECRETS=f"{__name__}.secrets_of")

    job = endpoint.send(tenant="broken")

    assert "TENANTQUEUE['HTTP']['SECRETS'] returned an invalid secret" in error_of(job)[2]
    assert "not base64?" not in str(job.errors)
    assert endpoint.received == []


def test_id_stays_the_same_over_attempts(endpoint: Endpoint):
    endpoint.replies = [Reply(500), Reply()]
    job = endpoint.send()

    run_pending(scheduled=True)

    assert job.refresh().state == "success"
    first, second = endpoint.received
    assert first.webhook_id == second.webhook_id == f"job_{job.pk}"


# what tenants may do


def test_tenant_may_have_hosts_of_its_own(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(ALLOWED_HOSTS=[], TENANT_HOSTS=f"{__name__}.hosts_of")

    states = [endpoint.send(tenant=tenant).state for tenant in ("open", "closed", "other")]

    assert states == ["success", "error", "error"]


def test_answer_of_a_callable_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(f"{__name__}.secrets_of", lambda tenant: asked.append(tenant) or [])

    async def ask() -> None:
        client = Client()
        for tenant in ("acme", "acme", "other"):
            await asyncio.gather(*(client.ask(f"{__name__}.secrets_of", tenant) for _ in range(3)))

    asyncio.run(ask())

    assert asked == ["acme", "other"]


def test_error_of_a_callable_is_not_kept(monkeypatch: pytest.MonkeyPatch):
    said: list[Exception | list[str]] = [LookupError("no such tenant"), [NEW]]

    def say(tenant: str) -> list[str]:
        answer = said.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(f"{__name__}.secrets_of", say)

    async def ask() -> object:
        client = Client()
        with pytest.raises(LookupError):
            await client.ask(f"{__name__}.secrets_of", "acme")
        return await client.ask(f"{__name__}.secrets_of", "acme")

    assert asyncio.run(ask()) == [NEW]
