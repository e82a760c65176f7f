"""Programs of users of Fireworq run unchanged, with another base URL."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from pytest_django.live_server_helper import LiveServer

from benchmarks.receiver import Received, Receiver, Reply
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.models import Job, TenantQueue
from tests.contrib.http.test_process import SETTINGS
from tests.process.workers import Workers, wait_until

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
TENANT = "acme & sons/7"
pytestmark = pytest.mark.urls("tests.contrib.fireworq.urls")


def has_modules() -> bool:
    """Return whether Perl has what the program uses."""
    perl = shutil.which("perl")
    if perl is None:
        return False
    modules = ("-MLWP::UserAgent", "-MJSON", "-MURI::Escape")
    return subprocess.run([perl, *modules, "-e1"], capture_output=True).returncode == 0


@pytest.fixture
def fireworq(transactional_db: None, live_server: LiveServer) -> str:
    """Return the base URL that a client of Fireworq is given: tenant and token stand in it."""
    scopes = ("read", "submit", "http", "tune")
    _, token = make_token("a program", tenant=TENANT, scopes=scopes)
    return f"http://{quote(TENANT, safe='')}:{token}@{urlsplit(live_server.url).netloc}/fireworq"


def run(*command: str) -> list[str]:
    """Run a program; return the lines that it prints."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert not ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.skipif(not has_modules(), reason="apt-get install perl libwww-perl libjson-perl")
def test_perl_program_runs_unchanged(fireworq: str, workers: Workers):
    received: list[Received] = []

    def answer(request: Received) -> Reply:
        received.append(request)
        if request.path == "/broken":
            return Reply(200, b'{"status": "permanent-failure", "message": "no such page"}')
        tries = sum(one.path == "/flaky" for one in received)
        if request.path == "/flaky" and tries == 1:
            return Reply(200, b'{"status": "failure", "message": "come again"}')
        return Reply(500, b'{"status": "success", "message": "well"}')  # the status is ignored

    with Receiver(answer) as receiver:
        workers.start(settings=SETTINGS)
        url = f"http://127.0.0.1:{receiver.port}"
        lines = run("perl", str(EXAMPLES / "fireworq_client.pl"), fireworq, url)

    node = lines.pop(-2)
    assert lines == [
        "queue crawler: 10 workers, 100 ms",
        "queues: crawler, slow",
        "routing: crawl -> crawler",
        *["pushed to crawler: /work"] * 5,
        "5 deferred, the last one 5",
        "0 deferred",
        *["pushed to crawler: /work"] * 2,
        "pushed to crawler: /flaky",
        "pushed to crawler: /broken",
        "crawl failed 1 times: permanent-failure 200 no such page",
        "0 failures",
        "9 pushes, 0 outstanding, 10 of 10 workers idle",
        "0 queues",
    ]
    assert node.startswith("served by node ")
    assert node.endswith(f" on {socket.gethostname()}")
    bodies = sorted((request.path, request.body) for request in received)
    assert bodies == [
        ("/broken", b'{"n":4}'),
        ("/flaky", b""),
        ("/flaky", b""),
        ("/work", b"page=index&n=2"),
        ("/work", b'{"n":1,"page":"index"}'),
    ]
    assert {request.headers["content-type"] for request in received} == {"application/json"}
    ended = Job.objects.filter(state="success").order_by("pk")
    assert [(job.task, job.attempt, job.tenant) for job in ended] == [
        ("crawl", 1, TENANT),
        ("crawl", 1, TENANT),
        ("crawl", 2, TENANT),
    ]
    queues = TenantQueue.objects.filter(tenant=TENANT)
    assert [(queue.name, queue.retired) for queue in queues] == [("crawler", True), ("slow", True)]


@pytest.mark.heavy  # heartbeats are some seconds apart
def test_stats_count_what_workers_have_done(fireworq: str, workers: Workers):
    def ask(path: str, body: bytes | None = None) -> dict[str, object]:
        parts = urlsplit(fireworq)
        request = urllib.request.Request(
            f"http://{parts.hostname}:{parts.port}{parts.path}{path}", data=body
        )
        request.add_header("Authorization", f"Bearer {parts.password}")
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def answer(request: Received) -> Reply:
        return Reply(body=b'{"status": "%s"}' % request.path[1:].encode())

    with Receiver(answer) as receiver:
        workers.start(settings=SETTINGS)
        for said in ("success", "success", "permanent-failure", "failure"):
            url = f"http://127.0.0.1:{receiver.port}/{said}"
            push = {"url": url, "max_retries": 1, "retry_delay": 0}
            ask("/job/mail", json.dumps(push).encode())
        wait_until(
            lambda: ask("/queue/default/stats")["total_completes"] == 4, what="all are counted"
        )
        stats = ask("/queue/default/stats")

    assert stats.pop("total_elapsed", 0) >= 0
    assert stats | {"pops_per_second": 0} == {
        "total_pushes": 4,
        "total_pops": 5,
        "total_successes": 2,
        "total_failures": 3,
        "total_permanent_failures": 2,
        "total_completes": 4,
        "pushes_per_second": 0,
        "pops_per_second": 0,
        "outstanding_jobs": 0,
        "total_workers": 5,
        "idle_workers": 5,
        "active_nodes": 1,
    }


@pytest.mark.skipif(shutil.which("curl") is None, reason="apt-get install curl")
def test_curl_script_runs_unchanged(fireworq: str):
    script = str(EXAMPLES / "fireworq_push.sh")

    lines = run("sh", script, fireworq, "http://worker.example/work")

    queue, routing, pushed, deferred, failed, stats = map(json.loads, lines)
    assert queue == {"name": "mail", "polling_interval": 200, "max_workers": 5}
    assert routing == {"queue_name": "mail", "job_category": "newsletter"}
    assert (pushed["queue_name"], pushed["payload"]) == ("mail", {"id": 12345})
    assert [job["id"] for job in deferred["jobs"]] == [pushed["id"]]
    assert failed == {"failed_jobs": [], "next_cursor": ""}
    assert stats["mail"]["total_pushes"] == 1
