"""The API of Fireworq: every endpoint, field and status code of its documentation."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.contrib.api.tokens import revoke_tokens
from django_tenantqueue.contrib.fireworq.models import FireworqQueue
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.exceptions import TenantMoving
from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.operations import control, queues
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.operations.tuning import add_row
from django_tenantqueue.queries.figures import Counts, add_figures
from django_tenantqueue.status.masking import MASK, mask_of_job
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import make_job, make_jobs, make_queue, make_worker, states_of
from tests.testapp.tasks import fail, noop

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.contrib.fireworq.urls")]

HTTP_JOB = "django_tenantqueue.http.http_job"
URL = "http://worker.example/work"
ALL = ("read", "submit", "http", "tune")


class Fireworq:
    """A client with a token."""

    def __init__(self, tenant: str | None, *scopes: str, **options: Any) -> None:
        self.tenant = tenant
        _, self.secret = make_token(
            f"client-{len(scopes)}", tenant=tenant, scopes=scopes or ALL, **options
        )
        self.headers = {"Authorization": f"Bearer {self.secret}"}

    def send(self, method: str, path: str, body: object = None, **options: Any) -> Any:
        """Send a request; a body of bytes is sent as it is."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        return Client().generic(
            method, f"/fireworq{path}", data, headers={**self.headers, **options}
        )

    def get(self, path: str) -> Any:
        return self.ok("GET", path)

    def ok(self, method: str, path: str, body: object = None) -> Any:
        response = self.send(method, path, body)
        assert response.status_code == 200, response.content
        assert response["Content-Type"] == "application/json"
        return response.json()

    def push(self, category: str = "mail", **fields: Any) -> dict[str, Any]:
        return self.ok("POST", f"/job/{category}", {"url": URL, **fields})


@pytest.fixture
def acme() -> Fireworq:
    return Fireworq("acme")


def http_jobs(queue: TenantQueue, count: int, **columns: Any) -> list[int]:
    made = {
        "task": "mail",
        "source_method": HTTP_JOB,
        "args": {"args": [URL, {"n": 1}], "kwargs": {"request_timeout": 9, "retry_delay": 60}},
        "max_attempts": 4,
        **columns,
    }
    return make_jobs(queue, count, **made)


# queues


def test_queue_is_put_read_overridden_and_deleted(acme: Fireworq):
    definition = {"polling_interval": 100, "max_workers": 10}
    whole = {"name": "test_queue1", **definition}

    assert acme.ok("PUT", "/queue/test_queue1", definition) == whole
    assert acme.get("/queue/test_queue1") == whole
    assert acme.get("/queues") == [whole]
    queue = TenantQueue.objects.get(tenant="acme", name="test_queue1")
    assert (queue.num_slots, queue.max_per_second, queue.burst) == (10, None, None)

    again = acme.ok("PUT", "/queue/test_queue1", {"max_workers": 20})
    assert again == {"name": "test_queue1", "polling_interval": 200, "max_workers": 20}

    assert acme.ok("DELETE", "/queue/test_queue1") == again
    assert acme.send("GET", "/queue/test_queue1").status_code == 404
    assert acme.send("DELETE", "/queue/test_queue1").status_code == 404
    assert acme.get("/queues") == []
    entries = Change.objects.filter(object_kind="queue").order_by("pk")
    assert [(e.source, e.actor, e.action) for e in entries] == [
        ("api", "token client-0", "add"),
        ("api", "token client-0", "tune"),
        ("api", "token client-0", "tune"),
    ]


def test_jobs_of_a_deleted_queue_wait_until_it_is_put_again(acme: Fireworq):
    acme.ok("PUT", "/queue/default", {})
    pushed = acme.push()

    acme.ok("DELETE", "/queue/default")

    queue = TenantQueue.objects.get(tenant="acme")
    assert (queue.retired, queue.paused) == (True, True)
    refused = acme.send("POST", "/job/mail", {"url": URL})
    assert (refused.status_code, b"retired" in refused.content) == (400, True)
    assert acme.send("GET", "/queue/default/waiting").status_code == 404

    acme.ok("PUT", "/queue/default", {})
    queue.refresh_from_db()
    assert (queue.retired, queue.paused) == (False, False)
    assert [job["id"] for job in acme.get("/queue/default/waiting")["jobs"]] == [pushed["id"]]


def test_pause_of_an_operator_outlives_a_definition(acme: Fireworq):
    acme.ok("PUT", "/queue/q", {})
    control.pause([TenantQueue.objects.get().pk])

    acme.ok("PUT", "/queue/q", {"max_workers": 3})

    assert TenantQueue.objects.get().paused


def test_throttling_is_the_rate_of_the_queue(acme: Fireworq):
    body = {"max_dispatches_per_second": 2.5, "max_burst_size": 5, "polling_interval": 700}

    answer = acme.ok("PUT", "/queue/slow", body)

    assert (
        answer
        == acme.get("/queue/slow")
        == {
            "name": "slow",
            "polling_interval": 100,
            "max_workers": 5,  # DEFAULT_TENANT_SLOTS
            "max_dispatches_per_second": 2.5,
            "max_burst_size": 5,
        }
    )
    queue = TenantQueue.objects.get()
    assert (queue.max_per_second, queue.burst) == (2.5, 5)
    assert "max_burst_size" not in acme.ok("PUT", "/queue/slow", {})
    queue.refresh_from_db()
    assert (queue.max_per_second, queue.burst) == (None, None)


def test_queue_without_a_limit_is_put_back_as_it_was_read(acme: Fireworq):
    make_queue("acme", "free", num_slots=None)

    definition = acme.get("/queue/free")

    assert definition["max_workers"] == 1_000_000
    assert acme.ok("PUT", "/queue/free", definition) == definition


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"foo",
        b'"foo"',
        b"[]",
        b"{",
        b"\xff",
        b'{"max_workers": NaN}',
        b"[" * 100_000,
        b'{"max_workers": ' + b"9" * 5000 + b"}",
        {"max_workers": -1},
        {"max_workers": 1.5},
        {"max_workers": True},
        {"max_workers": "10"},
        {"max_workers": 1_000_001},
        {"max_workers": 2**64},
        {"polling_interval": "x"},
        {"polling_interval": 2**31},
        {"max_dispatches_per_second": 1},
        {"max_burst_size": 1},
        {"max_dispatches_per_second": -1, "max_burst_size": 1},
        {"max_dispatches_per_second": "1", "max_burst_size": 1},
        {"max_dispatches_per_second": 1e300, "max_burst_size": 1},
        {"max_dispatches_per_second": 1, "max_burst_size": 2.5},
        b'{"max_dispatches_per_second": 1e999, "max_burst_size": 1}',
        {"max_dispatches_per_second": 10**400, "max_burst_size": 1},
    ],
    ids=lambda body: str(body)[:40],
)
def test_wrong_definition_is_a_bad_request(acme: Fireworq, body: object):
    response = acme.send("PUT", "/queue/q", body)

    assert response.status_code == 400
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response.content.startswith(b"400 Bad Request\n\n")
    assert not TenantQueue.objects.exists()


@pytest.mark.parametrize("name", ["x" * 101, "a%00b"])
def test_name_that_no_queue_can_have_is_a_bad_request(acme: Fireworq, name: str):
    assert acme.send("PUT", f"/queue/{name}", {}).status_code == 400
    assert acme.send("GET", f"/queue/{name}").status_code == 404


def test_node_is_a_worker_that_serves_the_queue(acme: Fireworq):
    make_queue("acme", "q")
    assert acme.send("GET", "/queue/q/node").status_code == 404
    make_worker(queues=["other"], host="elsewhere")
    assert acme.send("GET", "/queue/q/node").status_code == 404
    worker = make_worker(host="worker-7")

    assert acme.get("/queue/q/node") == {"id": str(worker.pk), "host": "worker-7"}
    assert acme.send("GET", "/queue/none/node").status_code == 404


# numbers


def test_stats_come_from_figures_and_pushes(acme: Fireworq):
    acme.ok("PUT", "/queue/q", {"max_workers": 10})
    acme.ok("PUT", "/queue/idle", {})
    acme.ok("PUT", "/routing/mail", {"queue_name": "q"})
    for _ in range(3):
        acme.push()
    run_commit_hooks("default")
    queue = TenantQueue.objects.get(name="q")
    make_jobs(queue, 2, state="running")
    make_worker()
    counts = Counts(
        started=600, succeeded=5, failed=2, retried=3, cancelled=1, wait_seconds=1.5, run_seconds=2
    )
    add_figures("default", {(queue.pk, "mail", ""): counts, (queue.pk, "sms", ""): counts})
    add_figures("default", {(queue.pk, "mail", "ValueError"): Counts(failed=2)})

    stats = acme.get("/queues/stats")

    assert stats["q"] == acme.get("/queue/q/stats")
    assert 600 / 60 <= stats["q"].pop("pops_per_second") <= 1200 / 60
    assert stats["q"] == {
        "total_pushes": 3,
        "total_pops": 1200,
        "total_successes": 10,
        "total_failures": 10,
        "total_permanent_failures": 4,
        "total_completes": 14,
        "total_elapsed": 7000,
        "pushes_per_second": 0,
        "outstanding_jobs": 3,
        "total_workers": 10,
        "idle_workers": 8,
        "active_nodes": 1,
    }
    assert set(stats) == {"q", "idle"}
    assert set(stats["idle"]) == {*stats["q"], "pops_per_second"}
    assert stats["idle"]["total_workers"] == stats["idle"]["idle_workers"] == 5
    assert acme.send("GET", "/queue/none/stats").status_code == 404


@pytest.mark.parametrize(
    ("minutes_ago", "counted"), [(0, 30 + 90), (1, 30), (2, 0)], ids=["now", "last", "before"]
)
def test_pushes_per_second_are_those_of_the_last_minute(
    acme: Fireworq, minutes_ago: int, counted: int
):
    minute = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=minutes_ago)
    FireworqQueue.objects.create(
        queue=make_queue("acme", "q"),
        pushes=5000,
        minute=minute,
        pushes_in_minute=30 * 60,
        pushes_before=90 * 60,
    )

    stats = acme.get("/queue/q/stats")

    assert stats["total_pushes"] == 5000
    assert counted / 2 <= stats["pushes_per_second"] <= counted


def test_push_counts_by_minutes(acme: Fireworq):
    acme.push()
    run_commit_hooks("default")
    row = FireworqQueue.objects.get()
    before = row.minute - timedelta(minutes=1)
    FireworqQueue.objects.update(minute=before, pushes_in_minute=7)

    acme.push()
    acme.push()
    run_commit_hooks("default")

    row.refresh_from_db()
    assert (row.pushes, row.pushes_in_minute, row.pushes_before) == (3, 2, 7)


# routings


def test_routing_is_put_read_overridden_and_deleted(acme: Fireworq):
    acme.ok("PUT", "/queue/one", {})
    acme.ok("PUT", "/queue/two", {})
    routing = {"queue_name": "one", "job_category": "a/b"}

    assert acme.ok("PUT", "/routing/a/b", {"queue_name": "one"}) == routing
    assert acme.get("/routing/a/b") == routing
    assert acme.get("/routings") == [routing]
    assert acme.push("a/b")["queue_name"] == "one"

    acme.ok("PUT", "/routing/a/b", {"queue_name": "two", "job_category": "ignored"})
    assert acme.push("a/b")["queue_name"] == "two"

    assert acme.ok("DELETE", "/routing/a/b")["queue_name"] == "two"
    assert acme.send("GET", "/routing/a/b").status_code == 404
    assert acme.send("DELETE", "/routing/a/b").status_code == 404
    assert acme.get("/routings") == []
    assert acme.push("a/b")["queue_name"] == "default"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/routing/mail", b"foo", 400),
        ("/routing/mail", {}, 400),
        ("/routing/mail", {"queue_name": None}, 400),
        ("/routing/mail", {"queue_name": 7}, 400),
        ("/routing/mail", {"queue_name": "undefined"}, 404),
        ("/routing/mail", {"queue_name": "a\x00b"}, 404),
        ("/routing/mail", {"queue_name": "\ud800"}, 404),
        (f"/routing/{'x' * 256}", {"queue_name": "q"}, 400),
        ("/routing/a%00b", {"queue_name": "q"}, 400),
    ],
)
def test_wrong_routing_is_refused(acme: Fireworq, path: str, body: object, status: int):
    make_queue("acme", "q")

    assert acme.send("PUT", path, body).status_code == status
    assert not Routing.objects.exists()


def test_no_client_reaches_a_routing_of_every_tenant(settings: Any):
    make_queue("", "q")
    settings.TENANTQUEUE = {"FIREWORQ": {"TENANT_WITHOUT_TOKEN": ""}}
    network, own, every = Fireworq("other"), Fireworq(""), Fireworq(None, "tune", "read")
    network.headers = {}
    row = Routing.objects.create(tenant=None, pattern="*", queue="q")

    for client in (network, own, every):
        assert client.get("/routings") == []
        assert client.send("DELETE", "/routing/*").status_code == 404
        client.ok("PUT", "/routing/*", {"queue_name": "q"})
        assert Routing.objects.exclude(pk=row.pk).get().tenant == ""
        client.ok("DELETE", "/routing/*")

    assert Routing.objects.get().pk == row.pk


# push


def test_push_answers_with_the_job_and_stores_an_http_job(acme: Fireworq):
    acme.ok("PUT", "/queue/test_queue1", {})
    acme.ok("PUT", "/routing/test_job1", {"queue_name": "test_queue1"})
    fields = {
        "url": URL,
        "payload": {"id": 1234, "value": "foo bar"},
        "run_after": 300,
        "max_retries": 3,
        "retry_delay": 60,
        "timeout": 30,
    }

    answer = acme.ok("POST", "/job/test_job1", fields)

    job = Job.objects.get()
    assert answer == {"id": job.pk, "queue_name": "test_queue1", "category": "test_job1", **fields}
    assert (job.task, job.source_method, job.is_async) == ("test_job1", HTTP_JOB, True)
    assert (job.state, job.max_attempts, job.timeout_seconds) == ("scheduled", 4, 90.0)
    assert 299 < (job.run_at - job.created_at).total_seconds() < 301
    assert job.args == {
        "args": [URL, fields["payload"]],
        "kwargs": {"rule": "fireworq", "request_timeout": 30, "retry_delay": 60},
    }


def test_fields_of_a_push_have_defaults(acme: Fireworq):
    answer = acme.push(payload=None, run_after=None)

    assert answer == {
        "id": answer["id"],
        "queue_name": "default",
        "category": "mail",
        "url": URL,
        "payload": None,
        "run_after": 0,
        "max_retries": 0,
        "retry_delay": 0,
        "timeout": 0,
    }
    job = Job.objects.get()
    assert (job.state, job.max_attempts) == ("ready", 1)


def test_names_of_fields_are_read_as_fireworq_reads_them(acme: Fireworq):
    answer = acme.ok("POST", "/job/mail", {"URL": URL, "Run_After": 5, "other": 1})

    assert (answer["url"], answer["run_after"]) == (URL, 5)


@pytest.mark.parametrize(
    "payload", ["a=1&b=é", 7, 1.5, 1e22, [-0.0], True, [], [{"a": None}], {"é": "\n"}, ""]
)
def test_payload_is_any_json(acme: Fireworq, payload: object):
    assert acme.push(payload=payload)["payload"] == payload
    listed = acme.get("/queue/default/waiting")["jobs"][0]
    assert listed.get("payload", "") == payload


def test_password_of_a_url_is_sent_as_a_header_that_nobody_is_shown(acme: Fireworq):
    url = "http://user:p%40ss:word@worker.example:3000/work?q=a@b"

    pushed = acme.push(url=url)

    job = Job.objects.get()
    assert job.args["args"][0] == "http://worker.example:3000/work?q=a@b"
    assert job.args["kwargs"]["headers"] == basic("user", "p@ss:word")
    assert mask_of_job(job).call(job.args)["kwargs"]["headers"] == {"Authorization": MASK}
    listed = acme.get(f"/queue/default/job/{pushed['id']}")
    assert listed["url"] == "http://worker.example:3000/work?q=a@b"


@pytest.mark.parametrize("rest", ["?mail=a@b.example", "#a@b.example", "/?next=//c@d.example/"])
def test_sign_behind_the_host_of_a_url_makes_nothing_before_it_a_user(acme: Fireworq, rest: str):
    acme.push(url=f"http://worker.example{rest}")
    acme.push(url=f"http://user:word@worker.example{rest}")

    plain, named = Job.objects.order_by("id")
    assert plain.args["args"][0] == named.args["args"][0] == f"http://worker.example{rest}"
    assert "headers" not in plain.args["kwargs"]
    assert named.args["kwargs"]["headers"] == basic("user", "word")


def test_job_that_is_enqueued_again_keeps_its_category(acme: Fireworq):
    acme.push("newsletter", payload="text", timeout=9)
    job = Job.objects.get()

    again = enqueue_again(job, tuple(job.args["args"]), job.args["kwargs"]).refresh()

    assert (again.task, again.source_method, again.args) == ("newsletter", HTTP_JOB, job.args)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", ["full_clean", "save"])
def test_routing_that_another_client_makes_at_the_same_time_is_changed(
    acme: Fireworq, monkeypatch: pytest.MonkeyPatch, moment: str
):
    make_queue("acme", "one")
    make_queue("acme", "two")
    real = getattr(Routing, moment)

    def too_late(row: Routing, **options: Any) -> None:
        if not Routing.objects.exists():
            other = connection.copy()
            with other.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO tenantqueue_routing (tenant, pattern, queue) "
                    "VALUES ('acme', 'mail', 'one')"
                )
            other.close()
        real(row, **options)

    monkeypatch.setattr(Routing, moment, too_late)

    acme.ok("PUT", "/routing/mail", {"queue_name": "two"})

    assert Routing.objects.get().queue == "two"


@pytest.mark.django_db(transaction=True)
def test_queue_that_another_client_makes_at_the_same_time_is_tuned(
    acme: Fireworq, monkeypatch: pytest.MonkeyPatch
):
    def too_late(using: str, row: TenantQueue, columns: Any) -> None:
        other = connection.copy()
        with other.cursor() as cursor:
            cursor.execute(
                "INSERT INTO tenantqueue_tenantqueue (tenant, name, num_slots, created_at) "
                "VALUES ('acme', 'q', 1, now())"
            )
        other.close()
        add_row(using, row, columns)

    monkeypatch.setattr("django_tenantqueue.contrib.fireworq.queues.add_row", too_late)

    acme.ok("PUT", "/queue/q", {"max_workers": 7})

    assert TenantQueue.objects.get().num_slots == 7


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"foo",
        b"null",
        b'{"url":"http://worker.example/","payload":aaa}',
        b'{"url":"http://worker.example/","payload":"\\u"}',
        b'{"url":"http://worker.example/"} x',
        b'{"url":"http://worker.example/","payload":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"url":"http://worker.example/","payload":' + b"9" * 10_000 + b"}",
        b'{"url":"http://worker.example/","payload":1e999}',
        {"payload": {}},
        {"url": ""},
        {"url": 7},
        {"url": "worker.example"},
        {"url": "ftp://worker.example/"},
        {"url": "http://user:secret@/"},
        {"url": "http://\ud800:secret@worker.example/"},
        {"url": "http://worker.example/a b"},
        {"url": URL, "run_after": "foo"},
        {"url": URL, "run_after": -1},
        {"url": URL, "run_after": 1.0},
        {"url": URL, "run_after": True},
        {"url": URL, "run_after": 2**63 - 1},
        {"url": URL, "max_retries": 40_000},
        {"url": URL, "retry_delay": 2**60},
        {"url": URL, "retry_delay": {}},
        {"url": URL, "timeout": 100_000},
        {"url": URL, "payload": "a\x00b"},
        {"url": URL, "payload": {"a": "\x00"}},
        {"url": URL, "payload": "\ud800"},
        {"url": URL, "payload": {"__tenantqueue__": "job_id"}},
        {"url": URL, "payload": "x" * 1_100_000},
        b'{"url":"http://worker.example/","payload":"' + b"x" * 3_000_000 + b'"}',
    ],
    ids=lambda body: str(body)[:70],
)
def test_wrong_push_is_a_bad_request(acme: Fireworq, body: object):
    response = acme.send("POST", "/job/mail", body)

    assert response.status_code == 400
    assert response.content.startswith(b"400 Bad Request\n")
    assert b"secret" not in response.content
    assert not Job.objects.exists()


@pytest.mark.parametrize("category", ["x" * 256, "a%00b"])
def test_category_that_no_job_can_have_is_a_bad_request(acme: Fireworq, category: str):
    assert acme.send("POST", f"/job/{category}", {"url": URL}).status_code == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_only_post_pushes(acme: Fireworq, method: str):
    response = acme.send(method, "/job/mail", {})

    assert (response.status_code, response.content) == (405, b"405 Method Not Allowed\n")


def test_push_for_a_tenant_that_moves_asks_to_come_again(
    acme: Fireworq, monkeypatch: pytest.MonkeyPatch
):
    def check_queue(using: str, tenant: str) -> None:
        raise TenantMoving(tenant)

    monkeypatch.setattr(queues, "check_queue", check_queue)
    response = acme.send("POST", "/job/mail", {"url": URL})

    assert (response.status_code, response["Retry-After"]) == (503, "2")


def test_full_queue_asks_to_come_again(acme: Fireworq):
    make_queue("acme", "default", max_waiting=1)
    acme.push()

    response = acme.send("POST", "/job/mail", {"url": URL})

    assert (response.status_code, response["Retry-After"]) == (429, "1")


def test_unknown_queue_is_a_bad_request_where_names_are_strict(acme: Fireworq, settings: Any):
    settings.TENANTQUEUE = {"STRICT_QUEUES": True}
    Routing.objects.create(tenant="acme", pattern="mail", queue="gone")

    response = acme.send("POST", "/job/mail", {"url": URL})

    assert (response.status_code, b"gone" in response.content) == (400, True)


# lists


def spread(queue: TenantQueue, what: str) -> list[int]:
    """Insert seven jobs of a list, some at the same moment; return their ids in its order."""
    start = timezone.now().replace(microsecond=123_456)
    moments = [start + timedelta(minutes=at) for at in (5, 1, 1, 3, 3, 3, 2)]
    if what == "waiting":
        found = http_jobs(queue, 4) + http_jobs(queue, 3, priority=120)
        return sorted(found, reverse=True)
    columns = {
        "deferred": ("scheduled", "run_at"),
        "grabbed": ("running", "queued_at"),
        "failed": ("error", "finished_at"),
    }
    state, column = columns[what]
    made = [(at, *http_jobs(queue, 1, state=state, **{column: at})) for at in moments]
    return [job_id for _, job_id in sorted(made, reverse=True)]


@pytest.mark.parametrize("what", ["waiting", "deferred", "grabbed"])
def test_list_is_paged_in_both_orders(acme: Fireworq, what: str):
    queue = make_queue("acme", "q")
    expected = spread(queue, what)
    others = [make_queue("acme", "before"), make_queue("other", "q")]
    for other in others:
        spread(other, what)
    # what belongs to other lists
    for state in {"ready", "scheduled", "running"} - {
        {"waiting": "ready", "deferred": "scheduled", "grabbed": "running"}[what]
    }:
        http_jobs(queue, 2, state=state)

    assert pages(acme, f"/queue/q/{what}?limit=2", "jobs") == expected
    assert pages(acme, f"/queue/q/{what}?limit=2&order=asc", "jobs") == expected[::-1]
    assert pages(acme, f"/queue/q/{what}?limit=3&order=nonsense", "jobs") == expected
    assert pages(acme, f"/queue/q/{what}?limit=7", "jobs") == expected


@pytest.mark.parametrize("order", ["failed", "created"])
def test_failures_are_paged_in_both_orders(acme: Fireworq, order: str):
    queue = make_queue("acme", "q")
    expected = spread(queue, "failed")
    spread(make_queue("acme", "after"), "failed")
    for state in ("success", "cancelled", "running"):
        http_jobs(queue, 2, state=state)
    if order == "created":
        expected = sorted(expected, reverse=True)

    assert pages(acme, f"/queue/q/failed?limit=2&order={order}", "failed_jobs") == expected


def pages(client: Fireworq, path: str, key: str) -> list[int]:
    """Follow the cursors of a list; return the ids."""
    found: list[int] = []
    cursor = ""
    for _ in range(10):
        page = client.get(f"{path}&cursor={cursor}" if cursor else path)
        found += [job["id"] for job in page[key]]
        cursor = page["next_cursor"].replace("+", "%2B").replace("=", "%3D")
        if not cursor:
            return found
    raise AssertionError("the list has no end")


def test_list_goes_on_behind_its_cursor_when_jobs_have_left(acme: Fireworq):
    queue = make_queue("acme", "q")
    expected = spread(queue, "deferred")
    cursor = acme.get("/queue/q/deferred?limit=3")["next_cursor"]

    control.cancel(expected[1:4])

    page = acme.get(f"/queue/q/deferred?limit=3&cursor={cursor}")
    assert [job["id"] for job in page["jobs"]] == expected[4:]


@pytest.mark.parametrize("what", ["waiting", "deferred", "grabbed", "failed"])
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("limit=0", 0),
        ("limit=-1", 7),
        ("limit=x", 7),
        ("limit=%C2%B2", 7),
        ("limit=99999999999999999999999", 7),
        ("cursor=nonsense", 7),
        ("cursor=" + base64.b64encode(b"9" * 60).decode(), 7),
        ("cursor=" + base64.b64encode(b"1,99999999999999999999").decode(), 7),
        ("cursor=" + base64.b64encode(b"-99999999999999999,1").decode(), 7),
        ("cursor=%00", 7),
        ("cursor=é", 7),
        ("order=%00", 7),
    ],
)
def test_wrong_parameters_of_a_list_are_ignored(acme: Fireworq, what: str, query: str, count: int):
    spread(make_queue("acme", "q"), what)

    page = acme.get(f"/queue/q/{what}?{query}")

    assert len(page["failed_jobs" if what == "failed" else "jobs"]) == count


def test_page_has_at_most_a_thousand_jobs(acme: Fireworq):
    http_jobs(make_queue("acme", "q"), 1001)

    page = acme.get("/queue/q/waiting?limit=5000")

    assert len(page["jobs"]) == 1000
    assert page["next_cursor"]


def test_page_of_large_payloads_ends_early(acme: Fireworq):
    args = {"args": [URL, "x" * 50_000]}
    http_jobs(make_queue("acme", "q"), 150, args=args)

    page = acme.get("/queue/q/waiting?limit=1000")
    rest = acme.get(f"/queue/q/waiting?limit=1000&cursor={page['next_cursor']}")

    assert [len(page["jobs"]), len(rest["jobs"])] == [100, 50]
    assert rest["next_cursor"] == ""


@pytest.mark.parametrize("what", ["waiting", "deferred", "grabbed", "failed"])
def test_list_of_an_undefined_queue_is_not_found(acme: Fireworq, what: str):
    assert acme.send("GET", f"/queue/none/{what}").status_code == 404


def test_empty_list_has_no_cursor(acme: Fireworq):
    make_queue("acme", "q")

    assert acme.get("/queue/q/waiting") == {"jobs": [], "next_cursor": ""}
    assert acme.get("/queue/q/failed") == {"failed_jobs": [], "next_cursor": ""}


# one job


@pytest.mark.parametrize(
    ("state", "what", "status", "fail_count"),
    [
        ("ready", "waiting", "claimed", 1),
        ("scheduled", "deferred", "claimed", 1),
        ("queued", "grabbed", "grabbed", 1),
        ("running", "grabbed", "grabbed", 1),
    ],
)
def test_job_has_the_fields_of_fireworq(
    acme: Fireworq, state: str, what: str, status: str, fail_count: int
):
    moment = datetime(2017, 6, 26, 1, 3, 34, 537_999, tzinfo=UTC)
    attempt = fail_count + (state in ("queued", "running"))
    (job_id,) = http_jobs(
        make_queue("acme", "q"),
        1,
        state=state,
        attempt=attempt,
        run_at=moment,
        created_at=moment - timedelta(hours=1),
    )
    described = {
        "id": job_id,
        "category": "mail",
        "url": URL,
        "payload": {"n": 1},
        "status": status,
        "created_at": "2017-06-26T00:03:34.537Z",
        "next_try": "2017-06-26T01:03:34.537Z",
        "timeout": 9,
        "fail_count": fail_count,
        "max_retries": 3,
        "retry_delay": 60,
    }

    assert acme.get(f"/queue/q/job/{job_id}") == described
    assert acme.get(f"/queue/q/{what}")["jobs"] == [described]


def test_job_without_timeout_and_payload_says_so(acme: Fireworq):
    pushed = acme.push()

    job = acme.get(f"/queue/default/job/{pushed['id']}")

    assert "payload" not in job
    assert (job["timeout"], job["retry_delay"], job["max_retries"]) == (0, 0, 0)


def test_job_is_deleted(acme: Fireworq):
    pushed = acme.push()
    path = f"/queue/default/job/{pushed['id']}"
    described = acme.get(path)

    assert acme.ok("DELETE", path) == described

    assert Job.objects.get().state == "cancelled"
    assert acme.send("GET", path).status_code == 404
    assert acme.send("DELETE", path).status_code == 404
    assert acme.get("/queue/default/failed")["failed_jobs"] == []
    entry = Change.objects.get(object_kind="job")
    assert (entry.action, entry.source, entry.actor) == ("cancel", "api", "token client-0")


def test_job_that_a_monitor_needs_is_not_deleted(acme: Fireworq):
    monitor = ConcurrentJobMonitor.objects.start("m", [fail.call()], tenant="acme", parallel=1)
    run_pending(scheduled=True)
    other = ConcurrentJobMonitor.objects.start("m", [noop.call()], tenant="acme", parallel=1)
    detail = Job.objects.get(monitor_id=monitor.pk, state="error")

    for path in (f"job/{other.anchor_id}", f"failed/{detail.pk}"):
        response = acme.send("DELETE", f"/queue/default/{path}")
        assert response.status_code == 400
        assert b"monitor" in response.content
        assert acme.get(f"/queue/default/{path}")["url"] == ""


def test_running_job_is_asked_to_stop_when_it_is_deleted(acme: Fireworq):
    (job_id,) = http_jobs(make_queue("acme", "q"), 1, state="running")

    acme.ok("DELETE", f"/queue/q/job/{job_id}")

    assert Job.objects.get().cancel_requested_at is not None


@pytest.mark.parametrize("kind", ["job", "failed"])
@pytest.mark.parametrize(
    ("job_id", "status"),
    [("a", 400), ("-1", 400), ("1.5", 400), ("²", 400), ("%00", 400), ("7", 404), ("9" * 30, 404)],
)
def test_wrong_id_is_refused(acme: Fireworq, kind: str, job_id: str, status: int):
    make_queue("acme", "q")

    for method in ("GET", "DELETE"):
        assert acme.send(method, f"/queue/q/{kind}/{job_id}").status_code == status
    assert acme.send("GET", f"/queue/none/{kind}/1").status_code == 404


FAILED = "django_tenantqueue.contrib.http.exceptions.HttpJobFailed"
ERROR = {"class": FAILED, "message": "said", "attempt": 4}


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (
            {**ERROR, "answer": {"status": 200, "message": "no"}},
            {"status": "failure", "code": 200, "message": "no"},
        ),
        (
            {**ERROR, "answer": {"status": 500, "message": ""}},
            {"status": "failure", "code": 500, "message": "said"},
        ),
        (
            {
                "class": "django_tenantqueue.contrib.http.exceptions.HttpJobRejected",
                "message": "said",
                "answer": {"status": 200, "message": "never"},
            },
            {"status": "permanent-failure", "code": 200, "message": "never"},
        ),
        (ERROR, {"status": "internal-failure", "code": 0, "message": "said"}),
        ({}, {"status": "internal-failure", "code": 0, "message": ""}),
        ("raw", {"status": "internal-failure", "code": 0, "message": ""}),
    ],
)
def test_failure_has_the_fields_of_fireworq(acme: Fireworq, error: Any, result: dict[str, Any]):
    moment = datetime(2017, 6, 14, 3, 15, 13, 792_000, tzinfo=UTC)
    (job_id,) = http_jobs(
        make_queue("acme", "q"),
        1,
        state="error",
        attempt=4,
        created_at=moment - timedelta(seconds=1),
        finished_at=moment,
        errors=[{"class": "first"}, error],
    )
    described = {
        "id": job_id,
        "job_id": job_id,
        "category": "mail",
        "url": URL,
        "payload": {"n": 1},
        "result": result,
        "fail_count": 4,
        "failed_at": "2017-06-14T03:15:13.792Z",
        "created_at": "2017-06-14T03:15:12.792Z",
    }

    assert acme.get(f"/queue/q/failed/{job_id}") == described
    assert acme.get("/queue/q/failed") == {"failed_jobs": [described], "next_cursor": ""}

    assert acme.ok("DELETE", f"/queue/q/failed/{job_id}") == described
    assert acme.send("GET", f"/queue/q/failed/{job_id}").status_code == 404
    assert not Job.objects.exists()
    assert Change.objects.get(object_kind="job").action == "delete"


def test_secret_values_of_a_payload_are_masked_where_jobs_are_read(acme: Fireworq):
    pushed = acme.push(payload={"password": "hunter2", "n": 1})

    job = acme.get(f"/queue/default/job/{pushed['id']}")

    assert pushed["payload"]["password"] == "hunter2"  # what the client has just said
    assert job["payload"] == {"password": "••••••", "n": 1}


@pytest.mark.parametrize("args", [{"__tenantqueue__": "removed"}, {"args": 7}, [1], "raw"])
def test_arguments_of_other_jobs_are_not_shown(acme: Fireworq, args: Any):
    queue = make_queue("acme", "q")
    plain = make_job(queue, args={"args": ["secret"]})
    (odd,) = http_jobs(queue, 1, args=args)

    jobs = {job["id"]: job for job in acme.get("/queue/q/waiting")["jobs"]}

    for job_id in (plain.pk, odd):
        assert jobs[job_id]["url"] == ""
        assert "payload" not in jobs[job_id]


# who may do what


def test_jobs_and_queues_of_another_tenant_do_not_exist(acme: Fireworq):
    other = Fireworq("other")
    other.ok("PUT", "/queue/q", {})
    other.ok("PUT", "/routing/mail", {"queue_name": "q"})
    pushed = other.push()
    (failed,) = http_jobs(TenantQueue.objects.get(), 1, state="error")
    make_queue("acme", "mine")

    assert [queue["name"] for queue in acme.get("/queues")] == ["mine"]
    assert set(acme.get("/queues/stats")) == {"mine"}
    assert acme.get("/routings") == []
    for path in ("", "/stats", "/node", "/waiting", "/deferred", "/grabbed", "/failed"):
        assert acme.send("GET", f"/queue/q{path}").status_code == 404
    for method in ("GET", "DELETE"):
        for queue in ("q", "mine"):
            assert acme.send(method, f"/queue/{queue}/job/{pushed['id']}").status_code == 404
            assert acme.send(method, f"/queue/{queue}/failed/{failed}").status_code == 404
        assert acme.send(method, "/routing/mail").status_code == 404
    assert acme.push()["queue_name"] == "default"
    assert Job.objects.get(queue__tenant="acme").queue.name == "default"


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("read", {"GET /queues", "GET /queue/q/failed", "GET /routings"}),
        ("http", {"POST /job/mail"}),
        ("submit", {"DELETE /queue/q/job/JOB"}),
        ("tune", {"PUT /queue/new", "PUT /routing/x"}),
    ],
)
def test_scope_is_needed(scope: str, allowed: set[str]):
    queue = make_queue("acme", "q")
    job = make_job(queue).pk
    client = Fireworq("acme", scope)
    bodies = {"/job/mail": {"url": URL}, "/routing/x": {"queue_name": "q"}}
    calls = (
        *("GET /queues", "GET /queue/q/failed", "GET /routings", "POST /job/mail"),
        *("PUT /queue/new", "PUT /routing/x", "DELETE /queue/q/job/JOB"),
    )

    for call in calls:
        method, path = call.replace("JOB", str(job)).split()
        status = client.send(method, path, bodies.get(path, {})).status_code
        assert status == (200 if call in allowed else 403), call


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_token_is_the_password_of_a_url(acme: Fireworq):
    make_queue("acme", "mine")
    for user, status in (("acme", 200), ("", 200), ("other", 401)):
        acme.headers = basic(user, acme.secret)
        assert acme.send("GET", "/queues").status_code == status


def test_tenant_in_a_url_may_have_a_colon():
    client = Fireworq("a:b")
    client.headers = basic("a:b", client.secret)

    assert client.get("/queues") == []


def test_token_of_every_tenant_acts_for_the_one_in_the_url():
    client = Fireworq(None)
    make_queue("acme", "a")
    make_queue("other", "b")

    for tenant, names in (("acme", ["a"]), ("other", ["b"]), ("", [])):
        client.headers = basic(tenant, client.secret)
        assert [queue["name"] for queue in client.get("/queues")] == names
    client.headers = basic("a\x00b", client.secret)
    assert client.send("GET", "/queues").status_code == 401
    client.headers = basic("x" * 201, client.secret)
    assert client.send("PUT", "/queue/q", {}).status_code == 400
    assert client.send("POST", "/job/mail", {"url": URL}).status_code == 400


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer x",
        "Bearer tq_x",
        "Basic",
        "Basic !",
        "Basic " + base64.b64encode(b"acme").decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
        "Digest tq_x",
        "Bearer tq_\ud7ff",
    ],
)
def test_request_without_a_token_is_refused(given: str):
    client = Fireworq("acme")
    client.headers = {"Authorization": given} if given else {}

    for method, path in (("GET", "/queues"), ("POST", "/job/x"), ("GET", "/job/x")):
        response = client.send(method, path)
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == 'Basic realm="fireworq"'


def test_revoked_token_is_refused(acme: Fireworq):
    revoke_tokens(ApiToken.objects.get().pk)

    assert acme.send("GET", "/queues").status_code == 401


def test_network_is_trusted_only_when_the_settings_say_so(settings: Any):
    client = Fireworq("other")
    client.headers = {}
    assert client.send("POST", "/job/mail", {"url": URL}).status_code == 401
    settings.TENANTQUEUE = {"FIREWORQ": {"TENANT_WITHOUT_TOKEN": "acme"}}

    pushed = client.push()

    assert Job.objects.get(pk=pushed["id"]).tenant == "acme"
    client.ok("DELETE", f"/queue/default/job/{pushed['id']}")
    assert Change.objects.filter(object_kind="job").get().actor == "the network"
    client.headers = {"Authorization": "Bearer wrong"}
    assert client.send("GET", "/queues").status_code == 401


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "none", 200),
        ("Origin", "http://evil.example", 403),
        ("Origin", "http://testserver.evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "http://testserver", 200),
    ],
)
def test_browser_pushes_nothing_for_another_site(
    settings: Any, header: str, value: str, status: int
):
    settings.TENANTQUEUE = {"FIREWORQ": {"TENANT_WITHOUT_TOKEN": "acme"}}
    client = Fireworq("other")
    client.headers = {}

    response = client.send("POST", "/job/x", {"url": URL}, **{header: value})

    assert response.status_code == status


def test_too_many_requests_of_a_token_are_refused():
    client = Fireworq("acme", requests_per_minute=1)
    answers = [client.send("GET", "/queues") for _ in range(5)]

    assert answers[-1].status_code == 429
    assert int(answers[-1]["Retry-After"]) > 0


# the rest


def test_version_is_text(acme: Fireworq):
    for path in ("/", "/version"):
        response = acme.send("GET", path)
        assert response.status_code == 200
        assert response.content.startswith(b"django_tenantqueue ")


@pytest.mark.parametrize("path", ["/nothing", "/queue", "/queue/q/", "/queue/q/other", "/job/"])
def test_unknown_address_is_not_found(acme: Fireworq, path: str):
    response = acme.send("GET", path)

    assert (response.status_code, response.content) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/queues", {"GET"}),
        ("/queues/stats", {"GET"}),
        ("/queue/q", {"GET", "PUT", "DELETE"}),
        ("/queue/q/node", {"GET"}),
        ("/queue/q/stats", {"GET"}),
        ("/queue/q/waiting", {"GET"}),
        ("/queue/q/failed", {"GET"}),
        ("/queue/q/job/1", {"GET", "DELETE"}),
        ("/queue/q/failed/1", {"GET", "DELETE"}),
        ("/routings", {"GET"}),
        ("/routing/mail", {"GET", "PUT", "DELETE"}),
    ],
)
def test_other_methods_are_not_allowed(acme: Fireworq, path: str, methods: set[str]):
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - methods:
        response = acme.send(method, path, {})
        assert response.status_code == 405
        assert set(response["Allow"].split(", ")) == methods


def test_head_is_answered_without_a_body(acme: Fireworq):
    response = acme.send("HEAD", "/queues")

    assert (response.status_code, response.content) == (200, b"")


def test_push_asks_the_database_for_little(acme: Fireworq, django_assert_max_num_queries: Any):
    acme.push()

    with django_assert_max_num_queries(4):
        acme.push()


def test_job_of_the_package_itself_is_not_found(acme: Fireworq):
    make_queue("acme", "admin")
    name = "django_tenantqueue.bulk.retry"
    columns = {"task": name, "source_type": "internal", "source_method": name}
    (waiting,) = make_jobs(TenantQueue.objects.get(name="admin"), 1, **columns)
    (failed,) = make_jobs(TenantQueue.objects.get(name="admin"), 1, state="error", **columns)

    for method in ("GET", "DELETE"):
        assert acme.send(method, f"/queue/admin/job/{waiting}").status_code == 404
        assert acme.send(method, f"/queue/admin/failed/{failed}").status_code == 404
    assert states_of([waiting, failed]) == {waiting: "ready", failed: "error"}


@pytest.mark.parametrize("payload", ['{"\\u0000": 1}', '{"\\ud800": 1}', "[" * 500 + "]" * 500])
def test_payload_that_cannot_be_stored_is_a_bad_request(acme: Fireworq, payload: str):
    body = f'{{"url": "{URL}", "payload": {payload}}}'.encode()

    assert acme.send("POST", "/job/mail", body).status_code == 400


def test_category_of_the_package_itself_is_a_bad_request(acme: Fireworq):
    body = f'{{"url": "{URL}"}}'.encode()

    answer = acme.send("POST", "/job/django_tenantqueue.bulk.retry", body)

    assert answer.status_code == 400
    assert not Job.objects.exists()
