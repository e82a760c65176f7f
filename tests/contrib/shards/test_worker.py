"""Real workers: one for each database."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_tenantqueue import group
from django_tenantqueue.management.commands.runworker import Command
from django_tenantqueue.models import Job, Worker
from tests.contrib.shards.conftest import ALIASES, tenant_of
from tests.contrib.shards.tasks import async_where, pass_on, where
from tests.databases import url_of_schema
from tests.process.workers import Workers, wait_until
from tests.testapp.tasks import noop

SETTINGS = "tests.contrib.shards.worker_settings"
DOWN = "postgres://127.0.0.1:1/nowhere"


@pytest.fixture
def urls(shards: None, server_url: str, database_url: str) -> dict[str, str]:
    name = database_url.rpartition("/")[2]
    return {alias: url_of_schema(server_url, name, alias) for alias in ALIASES}


def run(workers: Workers, urls: dict[str, str], alias: str) -> None:
    variables = {"TEST_SHARDS": json.dumps(urls)}
    options = ["--burst", f"--database={alias}", "--threads=2"]
    done = workers.run(*options, module=SETTINGS, variables=variables)
    assert done.process.returncode == 0, done.output


def results(alias: str, task: Any) -> list[Any]:
    jobs = Job.objects.using(alias).filter(task=task.name).order_by("pk")
    return [job.result for job in jobs]


def test_worker_runs_the_jobs_of_its_database_and_routes_what_they_enqueue(
    workers: Workers, urls: dict[str, str]
):
    tenants = [tenant_of(alias) for alias in ALIASES]
    pass_on.using(tenant=tenants[1]).delay(*tenants)
    async_where.using(tenant=tenants[1]).delay()
    group([noop.call()]).using(tenant=tenants[1]).delay(on_end=noop.call())

    run(workers, urls, "eu1")
    assert results("eu1", pass_on) == results("eu1", async_where) == ["eu1"]
    assert results("eu1", where) == [[tenants[1], "eu1"]]
    assert results("us0", where) == [None, None]
    run(workers, urls, "us0")

    assert results("us0", where) == [[tenants[0], "us0"], ["", "us0"]]
    for alias in ALIASES:
        assert not Job.objects.using(alias).exclude(state="success").exists()
    assert not Job.objects.using("default").exists()


def test_workers_of_one_database_run_while_another_is_down(workers: Workers, urls: dict[str, str]):
    job = where.using(tenant=tenant_of("eu1")).delay()

    # the first one, as these workers see it
    run(workers, {**urls, "us0": DOWN}, "eu1")

    assert job.refresh().result == [tenant_of("eu1"), "eu1"]


def test_workers_are_rows_of_their_database(workers: Workers, urls: dict[str, str]):
    variables = {"TEST_SHARDS": json.dumps(urls)}
    workers.launch("--database=eu1", module=SETTINGS, variables=variables)

    wait_until(lambda: Worker.objects.using("eu1").exists(), what="a worker has signed on")
    assert not Worker.objects.using("us0").exists()


@pytest.mark.usefixtures("shards")
def test_dispatcher_needs_the_first_database(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Command, "_window", lambda self, executor: 5)
    with pytest.raises(CommandError, match="run jobs of the database 'us0' alone"):
        call_command("runworker", database="eu1", dispatch="celery")


@pytest.mark.usefixtures("shards")
def test_worker_needs_a_database_of_the_shards():
    with pytest.raises(CommandError, match="--database='default' is not"):
        call_command("runworker", database="default", until_empty=True)
