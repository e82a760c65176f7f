"""A project of Django's task framework that comes from another backend, with a real worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.operations.control import cancel
from django_tenantqueue.states import State
from tests.contrib.project import mails
from tests.contrib.project.exercise import exercise

from .workers import Workers, wait_for_state, wait_until


def told(name: str, value: Any, **changes: Any) -> dict[str, Any]:
    return {
        "status": "SUCCESSFUL",
        "value": value,
        "attempts": 1,
        "args": [],
        "kwargs": {},
        "errors": 0,
        "priority": 0,
        "queue": "default",
        "deferred": False,
        "backend": "default",
        "path": f"tests.contrib.project.mails.{name}",
        "times": [True] * 4,
        **changes,
    }


def expected() -> dict[str, Any]:
    bounced = {"error": "ConnectionRefusedError", "traceback": True}
    return {
        "send": told(
            "send", "a@example.com: Hello", args=["a@example.com"], kwargs={"subject": "Hello"}
        ),
        "fetch": told("fetch", {"number": 7, "list": [1, 2]}, args=[7], priority=-5, queue="mail"),
        "attempt": told("attempt", [1, "RUNNING", "attempt"]),
        "bounce": told(
            "bounce", None, status="FAILED", args=["b@example.com"], errors=1, **bounced
        ),
        "late": told(
            *("send", None),
            status="READY",
            attempts=0,
            args=["later"],
            deferred=True,
            times=[True, False, False, False],
        ),
    }


def test_project_of_django_tasks_db_runs_when_its_backend_and_worker_are_ours(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log = tmp_path / "signals"
    monkeypatch.setenv("PROJECT_LOG", str(log))
    runner = workers.start(module="tests.contrib.project.settings")

    found = exercise()

    assert found == expected()
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == 8
    assert {int(pid) for _, pid, *_ in lines} == {child.pid for child in runner.children()}
    assert os.getpid() not in {int(pid) for _, pid, *_ in lines}


@pytest.mark.parametrize("error", ["TimeLimitExceeded", "Cancelled"])
def test_signal_names_what_has_interrupted_a_coroutine(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
):
    log = tmp_path / "signals"
    monkeypatch.setenv("PROJECT_LOG", str(log))
    workers.start(module="tests.contrib.project.settings", settings={"CANCEL_GRACE": 0})
    timeout = 0.3 if error == "TimeLimitExceeded" else None
    result = mails.linger.using(timeout=timeout).enqueue(60)
    job = Job.objects.get(pk=result.id)
    if error == "Cancelled":
        wait_for_state(job, State.RUNNING)
        cancel([job.pk])

    wait_until(lambda: job.refresh().final, what="the job has ended")

    result.refresh()
    name = f"django_tenantqueue.exceptions.{error}"
    assert [found.exception_class_path for found in result.errors] == [name]
    assert log.read_text().splitlines()[-1].split()[2:] == [result.id, "FAILED", name]


@pytest.mark.heavy
def test_project_told_the_same_before_it_came_from_django_tasks_db(
    transactional_db: None, database_url: str, tmp_path: Path
):
    own = f"tenantqueue_before_{os.getpid()}"
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.contrib.project.settings",
        "PROJECT_BACKEND": "django_tasks_db.DatabaseBackend",
        "PROJECT_LOG": str(tmp_path / "signals"),
        "DATABASE_URL": re.sub(r"/[^/?]+(\?|$)", rf"/{own}\1", database_url),
    }

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )

    with psycopg.connect(database_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {own}")
        try:
            python("django", "migrate", "-v0")
            options = ["--queue-name", "*", "--interval", "0.1", "--no-startup-delay"]
            worker = subprocess.Popen(
                [sys.executable, "-m", "django", "db_worker", *options], env=environment
            )
            try:
                told_before = json.loads(python("tests.contrib.project.exercise").stdout)
            finally:
                worker.kill()
                worker.wait()
        finally:
            server.execute(f"DROP DATABASE {own} WITH (FORCE)")
    assert told_before == expected()
