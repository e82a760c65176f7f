"""What `manage.py tenantqueue status` prints."""

from __future__ import annotations

import errno
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue import task
from django_tenantqueue.calls import sources
from django_tenantqueue.management.status_text import WIDTH
from django_tenantqueue.models import TenantQueue
from django_tenantqueue.states import State
from django_tenantqueue.status import fleet_report
from tests.factories import make_duty, make_job, make_jobs, make_queue, make_worker

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("tenantqueue", "status", *arguments, stdout=out, no_color=True)
    return out.getvalue()


def rows(*arguments: str) -> list[str]:
    """Return the lines that the command prints, with single spaces."""
    return [" ".join(line.split()) for line in printed(*arguments).splitlines()]


def read_json(*arguments: str) -> Any:
    return json.loads(printed("--format=json", *arguments))


def read_problems() -> list[str]:
    return [problem["text"] for problem in read_json()["problems"]]


def test_empty_fleet_says_what_to_do() -> None:
    text = printed()

    assert text.startswith("No worker runs.\n")
    assert "No maintenance has been done yet" in text
    assert "! no worker runs: start one with manage.py runworker\n" in text


def test_worker_has_a_line() -> None:
    worker = make_worker(
        jobs_running=9, rss_bytes=150 * 1024 * 1024, claims_per_second=0.34, jobs_per_second=1234.5
    )
    make_jobs(make_queue(), 3, state=State.RUNNING, worker_id=worker.pk)

    head, line = rows()[:2]

    assert head == "worker host pid version up state running memory claims/s jobs/s"
    assert line == "web-1:100 web-1 100 0.1.0 3 h working 3 150 MB 0.3 1,234"


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({"sleeping_until": timezone.now() + timedelta(days=1)}, "idle"),
        ({"draining": True}, "draining"),
        ({"stopping": True}, "stopping"),
        ({"heartbeat_at": timezone.now() - timedelta(days=1)}, "silent"),
    ],
)
def test_line_tells_the_state(columns: dict[str, Any], state: str) -> None:
    make_worker(**columns)

    assert f" {state} " in rows()[1]


def test_last_error_stands_in_one_line_below_its_worker() -> None:
    failed_at = timezone.now() - timedelta(minutes=7)
    make_worker(last_error=f"lost\n\x1b[31mthe\tconnection {'x' * 500}", last_error_at=failed_at)

    line = rows()[2]

    assert line.startswith("last error 7 min ago: lost [31mthe connection xxx")
    assert line.endswith("x…")


def test_running_jobs_stand_below_their_worker_the_longest_first() -> None:
    worker = make_worker()
    queue = make_queue("acme", "reports")
    first, second = (
        make_job(
            queue,
            state=State.RUNNING,
            task="reports.build",
            worker_id=worker.pk,
            attempt=2,
            started_at=timezone.now() - timedelta(minutes=minutes),
        )
        for minutes in (5, 9)
    )

    lines = rows()

    assert lines[2] == f"#{second.pk} running 9 min 2/5 acme/reports reports.build"
    assert lines[3] == f"#{first.pk} running 5 min 2/5 acme/reports reports.build"


def test_jobs_beyond_the_first_few_are_counted() -> None:
    worker = make_worker()
    make_jobs(make_queue(), 17, state=State.RUNNING, worker_id=worker.pk)

    lines = rows()

    assert sum(line.startswith("#") for line in lines) == 5
    assert "and 12 more" in lines


def test_option_tells_how_many_jobs_are_shown() -> None:
    worker = make_worker()
    make_jobs(make_queue(), 3, state=State.RUNNING, worker_id=worker.pk)

    assert sum(line.startswith("#") for line in rows("--jobs=2")) == 2
    assert not any(line.startswith("#") for line in rows("--jobs=0"))


@pytest.mark.parametrize("value", ["-1", "many", "1000000"])
def test_wrong_number_of_jobs_is_refused(value: str) -> None:
    with pytest.raises(CommandError, match="is not a number from 0 to 10,000"):
        printed(f"--jobs={value}")


def test_jobs_of_workers_that_are_gone_are_shown() -> None:
    make_worker()
    make_jobs(make_queue(), 1, state=State.RUNNING, worker_id=987_654)

    lines = rows()

    assert "Held by workers that are gone" in lines
    assert "! 1 job is held by a worker that is gone; a worker rescues it" in lines


def test_duties_are_listed() -> None:
    now = timezone.now()
    make_duty(
        ran_at=now - timedelta(minutes=2),
        outcome="promoted 5 jobs",
        acted_at=now - timedelta(hours=3),
    )
    make_duty("rescue", error="LockNotAvailable: no")

    lines = rows()

    assert "maintenance last run duration runs by last result" in lines
    assert "promote 2 min ago 12 ms 1,234 web-1 3 h ago promoted 5 jobs" in lines
    assert "error: LockNotAvailable: no" in lines


def test_jobs_are_counted() -> None:
    queue = make_queue()
    make_jobs(queue, 3)
    make_jobs(queue, 2, state=State.SCHEDULED)
    make_jobs(queue, 1, state=State.RUNNING)

    lines = rows()

    assert {"ready 3", "scheduled 2", "running 1", "(counted up to 10,000)"} <= set(lines)


def test_held_jobs_are_counted_when_there_are_any() -> None:
    assert not any("held" in line for line in rows())
    make_jobs(make_queue("acme"), 2, state=State.HELD, held_by="session", session_key="acme/7")

    assert "held by a session 2 the first for 0 s: session 7, acme / default" in rows()
    assert read_json()["counts"]["held"]["session"] == 2


def test_report_says_whether_workers_are_short() -> None:
    worker = make_worker(threads=8, async_slots=10)
    make_jobs(make_queue(), 3, state=State.RUNNING, worker_id=worker.pk)
    since = timezone.now() - timedelta(minutes=5, seconds=20)
    make_jobs(make_queue(num_slots=2), 3, created_at=since, run_at=since)

    lines = rows()

    assert (
        "2 jobs could start now if workers were free; the first has waited 5 min for a worker"
        in lines
    )
    assert "the workers run 3 jobs in 8 threads and 10 coroutine slots" in lines
    assert read_json()["need"]["startable"] == 2


def test_count_that_stopped_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_report, "TOTAL_COUNTED_TO", 2)
    make_jobs(make_queue(), 3)

    assert "ready 2+" in rows()


def test_ready_jobs_that_no_worker_takes_are_named() -> None:
    make_worker(queues=["other"])
    make_job(make_queue("acme", "reports"))

    assert (
        "! ready jobs that no worker takes, in acme/reports: "
        "start a worker that takes them with manage.py runworker"
    ) in rows()


def test_queues_that_no_worker_takes_are_named_before_they_have_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "_tasks", {})
    for queue in ("mail", "nightly", "excluded"):
        task(name=f"tests.{queue}", queue=queue)(lambda: None)
    make_worker(queues=["default", "mail"], tenants=["acme"])
    make_worker(exclude_queues=["nightly", "excluded"], tenants=["zeta"])
    make_worker(draining=True)
    for tenant, name in (("acme", "default"), ("acme", "mail"), ("zeta", "reports")):
        make_queue(tenant, name)
    make_queue("acme", "old", retired=True)
    make_queue("acme", "reports")
    make_queue("other", "excluded")
    problem = "queues that no running worker takes: acme/reports, other/excluded, nightly"

    assert read_problems() == [problem]
    make_job(TenantQueue.objects.get(tenant="acme", name="reports"))
    assert problem.replace("acme/reports, ", "") in read_problems()
    make_worker()
    assert read_problems() == []


def test_workers_that_need_too_many_connections_are_a_problem() -> None:
    make_worker(threads=5000)

    assert "the workers may open 5003 database connections, and the server" in printed()
    with override_settings(TENANTQUEUE={"POOLER": True}):
        assert read_problems() == []


def test_nothing_is_wider_than_a_terminal() -> None:
    long = "x" * 150
    worker = make_worker(
        name=f"{long}.17",
        host=f"{long}.local",
        pid=4_194_304,
        version=f"0.1.0+{long[:30]}",
        jobs_running=1000,
        rss_bytes=10**12,
        claims_per_second=12345,
        jobs_per_second=123456,
        last_error=long,
        last_error_at=timezone.now(),
    )
    queue = make_queue(long, long[:90])
    make_jobs(queue, 1, state=State.RUNNING, task=long, worker_id=worker.pk)
    now = timezone.now()
    make_duty("d" * 50, worker=long, outcome=long, acted_at=now, error=long, runs=10**9)

    lines = printed().splitlines()

    assert max(map(len, lines)) == WIDTH
    assert lines[1].startswith("xxxxx…xx.17 ")


def test_machines_get_one_object() -> None:
    worker = make_worker(rss_bytes=1000, last_error="no", last_error_at=timezone.now())
    (job_id,) = make_jobs(
        make_queue("acme", "reports"), 1, state=State.RUNNING, worker_id=worker.pk
    )
    make_duty()

    report = read_json()

    (found,) = report["workers"]
    assert (found["id"], found["state"], found["rss_bytes"]) == (worker.pk, "working", 1000)
    assert found["jobs"][0]["id"] == job_id
    assert report["duties"][0]["name"] == "promote"
    assert report["counts"]["running"] == 1
    assert report["counted_to"] == 10_000
    assert report["problems"] == []


def test_machines_are_told_of_problems() -> None:
    text = "no worker runs: start one with manage.py runworker"
    remedy = "Start one with “manage.py runworker”."
    assert read_json()["problems"] == [{"code": "no_worker", "text": text, "remedy": remedy}]


def test_unknown_database_is_named() -> None:
    with pytest.raises(CommandError, match="--database='elsewhere' is not in DATABASES") as caught:
        printed("--database=elsewhere")
    assert caught.value.returncode == 2


def test_database_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT * FROM missing_table")

    monkeypatch.setattr("django_tenantqueue.management.subcommands.status.read_report", refuse)

    with pytest.raises(CommandError, match="the jobs' database 'default' cannot be used") as caught:
        printed()
    assert caught.value.returncode == 1


def test_format_is_an_option_of_the_shell_and_of_code() -> None:
    make_worker()

    assert json.loads(printed("--format=json"))["workers"]
    out = io.StringIO()
    call_command("tenantqueue", "status", format="json", stdout=out)
    assert json.loads(out.getvalue())["workers"]
    assert printed("--format=text") == printed()


def test_clock_that_differs_is_a_problem_with_its_host() -> None:
    make_worker(host="web-1", clock_ahead_seconds=-12.34)
    make_worker(host="web-2", clock_ahead_seconds=0.2)

    (problem,) = read_problems()

    assert problem == (
        "clocks that differ from the database server's: web-1 (-12.3 s). Synchronize them with NTP"
    )


def test_numbers_of_one_are_singular() -> None:
    worker = make_worker(threads=1, async_slots=1)
    make_job(state=State.RUNNING, worker_id=worker.pk)

    assert "the workers run 1 job in 1 thread and 1 coroutine slot" in rows()


class Gone(io.StringIO):
    """A pipe whose reader has read enough."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_reader_that_has_read_enough_is_no_error(tmp_path, monkeypatch) -> None:
    with (tmp_path / "out").open("w") as standard:
        monkeypatch.setattr("sys.stdout", standard)
        call_command("tenantqueue", "status", stdout=Gone())
        standard.write("this goes nowhere")
        standard.flush()

    assert (tmp_path / "out").read_text() == ""


class Full(io.StringIO):
    """A file on a disk without space."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_output_that_cannot_be_written_is_an_error_in_one_line(tmp_path, monkeypatch) -> None:
    with (tmp_path / "out").open("w") as standard:
        monkeypatch.setattr("sys.stdout", standard)
        with pytest.raises(CommandError, match="output cannot be written: No space left") as caught:
            call_command("tenantqueue", "status", stdout=Full())

    assert caught.value.returncode == 1
