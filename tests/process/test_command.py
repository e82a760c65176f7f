"""The options of `runworker`, and what it says when it cannot work."""

import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import Job, Worker
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import hold
from .workers import (
    ROOT,
    SETTINGS,
    Gate,
    Workers,
    make_queue,
    wait_for_end,
    wait_for_state,
    wait_until,
)


def test_a_burst_worker_ends_when_everything_is_done(workers: Workers):
    ids = [
        job_id
        for number in range(10)
        for job_id in noop.using(tenant=f"tenant {number}").enqueue_many([()] * 30)
    ]

    runner = workers.run("--until-empty", "--processes=2")

    assert runner.process.returncode == 0
    assert set(Job.objects.values_list("state", flat=True)) == {State.SUCCESS}
    assert len(ids) == Job.objects.count()
    assert not Worker.objects.exists()


def test_jobs_of_all_queues_and_tenants_run_when_a_star_names_them(workers: Workers):
    jobs = [noop.using(tenant=tenant, queue="mail").delay() for tenant in ("", "acme")]

    workers.run("--until-empty", "--queues=*", "--tenants=*")

    assert [job.refresh().state for job in jobs] == ["success", "success"]


def test_a_burst_worker_ends_when_there_is_nothing_to_do(workers: Workers):
    runner = workers.run("--until-empty")

    assert runner.process.returncode == 0
    assert "database connections" not in runner.output  # the server allows enough


def test_a_burst_worker_ends_when_what_is_left_is_paused(workers: Workers):
    make_queue("paused", paused=True)
    make_queue("shut", num_slots=0)
    ids = [noop.using(tenant=tenant).delay().pk for tenant in ("paused", "shut", "open")]

    assert workers.run("--until-empty").process.returncode == 0

    states = dict(Job.objects.values_list("queue__tenant", "state"))
    assert states == {"paused": State.READY, "shut": State.READY, "open": State.SUCCESS}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("options", "of", "taken"),
    [
        (["--queues=mail,sync"], "queue", {"mail", "sync"}),
        (["--exclude-queues=mail", "--exclude-queues=sync"], "queue", {"reports"}),
        (["--tenants=mail"], "tenant", {"mail"}),
    ],
    ids=["queues", "excluded", "tenants"],
)
def test_only_jobs_that_the_filters_take_are_run(
    workers: Workers, options: list[str], of: str, taken: set[str]
):
    names = ("mail", "reports", "sync") if of == "queue" else ("mail", "reports", "")
    jobs = {name: noop.using(**{of: name}).delay() for name in names}

    runner = workers.run("--until-empty", *options)

    assert {name for name, job in jobs.items() if job.refresh().final} == taken
    assert "no queue is named" not in runner.output


def test_an_unknown_queue_is_named_when_it_is_in_a_filter(workers: Workers):
    noop.using(queue="mail").delay()

    runner = workers.run("--until-empty", "--queues=mial,mail", "--exclude-queues=spam")

    assert runner.process.returncode == 0
    assert "no queue is named 'mial' yet" in runner.output
    assert "no queue is named 'spam' yet" in runner.output
    assert "'mail' yet" not in runner.output


def test_a_filtered_queue_is_served_when_it_comes_into_being_later(workers: Workers):
    workers.start("--queues=later")

    wait_for_end([noop.using(queue="later").delay().pk])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--processes=0", "'0' is not a whole number from 1 to 1,000"),
        ("--processes=two", "'two' is not a whole number"),
        ("--threads=-1", "'-1' is not a whole number from 1 to 10,000"),
        ("--async-slots=x", "'x' is not a whole number"),
        ("--threads=999999999", "'999999999' is not a whole number from 1 to 10,000"),
        ("--async-slots=999999999", "is not a whole number from 1 to 10,000"),
        ("--max-rss=" + 30 * "9", "is not a whole number from 1 to 1,073,741,824"),
        ("--shutdown-timeout=-1", "is not a number of seconds"),
        ("--shutdown-timeout=soon", "'soon' is not a number of seconds"),
        ("--quues=mail", "unrecognized arguments: --quues=mail"),
    ],
)
def test_a_bad_option_is_named_when_it_is_given(workers: Workers, option: str, message: str):
    runner = workers.run(option)

    assert runner.process.returncode == 2
    assert message in runner.output
    assert "Traceback" not in runner.output
    assert not Worker.objects.exists()


def test_an_unknown_database_is_named_when_it_is_given(workers: Workers):
    runner = workers.run("--database=nowhere")

    assert runner.process.returncode == 2
    assert "--database='nowhere' is not in DATABASES, which has default" in runner.output
    assert "Traceback" not in runner.output


def test_a_missing_server_is_named_when_nothing_listens(workers: Workers):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else can listen there
        port = taken.getsockname()[1]
        runner = workers.run(
            "--until-empty", database_url=f"postgres://me:no@127.0.0.1:{port}/none"
        )

    assert runner.process.returncode == 1
    assert "CommandError: The jobs' database 'default' cannot be reached" in runner.output
    assert "Is PostgreSQL running" in runner.output
    assert "Traceback" not in runner.output


def test_sqlite_is_refused_when_it_is_configured(workers: Workers, tmp_path):
    runner = workers.run("--until-empty", database_url=f"sqlite:///{tmp_path}/db.sqlite3")

    assert runner.process.returncode == 1
    assert "tenantqueue.E002" in runner.output
    assert "needs PostgreSQL" in runner.output
    assert "Traceback" not in runner.output


def test_a_wrong_setting_is_named_when_the_worker_starts(workers: Workers):
    runner = workers.run("--until-empty", settings={"DEFALT_TENANT_SLOTS": 3})

    assert runner.process.returncode == 1
    assert "tenantqueue.E001" in runner.output
    assert "did you mean TENANTQUEUE['DEFAULT_TENANT_SLOTS']" in runner.output


def test_a_job_is_given_back_uncounted_when_the_worker_does_not_know_its_task(
    workers: Workers, gate: Gate
):
    gate.open()
    older = workers.start(module="tests.settings")  # without the tasks of these tests
    job = hold.using(max_attempts=1).delay(str(gate))

    wait_until(lambda: job.refresh().claim_seq == 1 and job.state == State.SCHEDULED)

    assert (job.attempt, job.worker_id) == (0, None)
    assert [error["class"] for error in job.errors or ()] == [UNKNOWN_CLASS]
    assert "no task is named 'tests.process.tasks.hold'" in older.output
    older.send(signal.SIGTERM)
    assert older.end() == 0
    workers.start()
    Job.objects.filter(pk=job.pk).update(run_at=job.created_at)
    wait_for_state(job, State.SUCCESS)
    assert job.attempt == 1


def test_the_worker_is_quiet_when_it_is_told_to_be(workers: Workers):
    runner = workers.run("--until-empty", "--verbosity=0")

    assert runner.output == ""


def test_there_is_a_warning_when_the_server_allows_too_few_connections(workers: Workers):
    runner = workers.run("--until-empty", "--processes=1", "--threads=5000")

    assert runner.process.returncode == 0
    assert "this worker may open 5003 database connections; the server allows " in runner.output


def test_command_refuses_when_children_would_be_killed_before_they_can_make_room(workers: Workers):
    runner = workers.run("--max-rss=300", "--kill-rss=200")

    assert runner.process.returncode == 2
    assert "--kill-rss=200 is not above --max-rss=300" in runner.output


def test_report_ends_quietly_when_its_reader_is_gone(workers: Workers):
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS, "DATABASE_URL": workers.database_url}
    command = [sys.executable, "-W", "error", "-m", "django", "tenantqueue", "status"]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()

    assert (process.returncode, said) == (0, b"")


def test_worker_logs_a_line_for_each_job_when_it_is_asked_to(workers: Workers):
    job = noop.using(tenant="acme").delay()

    runner = workers.run("--until-empty", "--log-jobs")

    lines = [line for line in runner.output.splitlines() if f"job {job.pk} " in line]
    assert len(lines) == 1, runner.output
    assert f" INFO job {job.pk} ({noop.name}) ended in success after 0." in lines[0]


def test_worker_says_at_its_start_what_it_serves_and_no_password(workers: Workers):
    runner = workers.run("--until-empty", "--queues=mail", "--tenants=acme")

    lines = runner.output.splitlines()
    (number,) = [n for n, line in enumerate(lines) if line.startswith("django_tenantqueue 0.")]
    assert ", PostgreSQL " in lines[number + 1]
    assert lines[number + 1].startswith("database default: test_")
    assert lines[number + 2].startswith("queues: mail of the tenants acme; ")
    assert " tasks" in lines[number + 2]
    password = urlsplit(workers.database_url).password
    assert not password or password not in runner.output
