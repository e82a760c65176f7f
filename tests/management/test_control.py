"""manage.py tenantqueue pause, resume, cancel, retry and tune."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_tenantqueue import ConcurrentJobMonitor, Job
from django_tenantqueue.models import Change, Session, TaskControl, TenantQueue
from tests.factories import make_job, make_queue, state_of
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db


def run(*arguments: Any, **options: Any) -> str:
    out = StringIO()
    call_command("tenantqueue", *arguments, stdout=out, **options)
    return out.getvalue()


def make_monitor() -> ConcurrentJobMonitor:
    monitor = ConcurrentJobMonitor.objects.start(
        "letters", [noop.call()], parallel=1, tenant="acme"
    )
    assert isinstance(monitor, ConcurrentJobMonitor)
    return monitor


def test_queue_is_paused_and_resumed_in_the_name_of_the_shell_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "deploy")
    ours, other = make_queue("acme", "mail"), make_queue("zeta", "mail")

    assert run("pause", "--queue=mail", "--tenant=acme") == "acme / mail: paused\n"
    assert run("pause", queue="mail", tenant="acme") == "acme / mail: was paused already\n"
    paused = dict(TenantQueue.objects.values_list("pk", "paused"))
    assert paused == {ours.pk: True, other.pk: False}
    change = Change.objects.get()
    assert (change.actor, change.source) == ("deploy", "command")
    lines = run("resume", "--queue=mail").splitlines()
    assert lines == ["acme / mail: resumed", "zeta / mail: was not paused"]


def test_all_queues_of_a_tenant_are_paused() -> None:
    make_queue("acme", "mail")
    make_queue("acme", "reports")

    assert run("pause", "--tenant=acme") == "acme / mail: paused\nacme / reports: paused\n"


def test_task_is_paused_and_resumed() -> None:
    assert run("resume", "--task", noop.name) == "nothing was changed: there is no such row\n"
    assert run("pause", "--task", noop.name) == f"{noop.name}: paused\n"
    assert TaskControl.objects.get().paused
    with pytest.raises(
        CommandError, match=r"no task, method or finished job is named 'gone\.away'"
    ):
        run("pause", "--task=gone.away")
    assert run("pause", "--task=gone.away", "--allow-unknown") == "gone.away: paused\n"


def test_session_is_paused() -> None:
    said = run("pause", "--session=ledger-7", "--tenant=acme")

    assert said == "acme / ledger-7: paused\n"
    assert Session.objects.get().paused


def test_monitor_is_paused_tuned_and_cancelled() -> None:
    monitor = make_monitor()

    assert run("pause", "--monitor", monitor.pk) == f"{monitor}: paused\n"
    assert run("tune", "parallel=3", monitor=monitor.pk) == f"{monitor}: parallel=3\n"
    assert run("cancel", f"--monitor=#{monitor.pk}") == f"{monitor}: cancelled\n"
    monitor.refresh_from_db()
    assert (monitor.paused, monitor.parallel) == (True, 3)


def test_jobs_are_cancelled_and_retried() -> None:
    waiting, running, ended = make_job(), make_job(state="running"), make_job(state="cancelled")

    lines = run("cancel", waiting.pk, f"#{running.pk}", ended.pk).splitlines()

    assert lines == [
        f"#{waiting.pk}: cancelled",
        f"#{running.pk}: asked to stop",
        f"#{ended.pk}: had ended already",
    ]
    assert run("retry", ended.pk) == f"#{ended.pk}: ready again\n"
    assert run("retry", ended.pk) == f"#{ended.pk}: nothing to retry\n"
    assert state_of(waiting.pk) == "cancelled"


def test_what_was_refused_is_an_error_with_the_reason() -> None:
    done, failed = make_job(state="success"), make_job(state="error")
    out, gone = StringIO(), failed.pk + 1_000_000

    with pytest.raises(CommandError) as refused:
        call_command("tenantqueue", "retry", failed.pk, done.pk, gone, stdout=out)

    assert out.getvalue() == f"#{failed.pk}: ready again\n"
    assert refused.value.returncode == 1
    first, second = str(refused.value).splitlines()
    assert first.startswith(f"#{done.pk} was refused: it has succeeded")
    assert second == f"#{gone} was refused: there is no such job"


def test_result_is_printed_as_json() -> None:
    job = make_job()

    assert json.loads(run("cancel", job.pk, "--format=json")) == {
        "changed": [job.pk],
        "requested": [],
        "unchanged": [],
        "refused": {},
        "more": False,
    }


def test_columns_are_written() -> None:
    make_queue("acme", "mail", num_slots=5, max_per_second=2.0)
    job = make_job(priority=100)

    said = run("tune", "--queue=mail", "--tenant=acme", "num_slots=10", "max_per_second=none")
    assert said == "acme / mail: num_slots=10 max_per_second=none\n"
    assert run("tune", "--job", job.pk, "priority=50") == f"#{job.pk}: priority=50\n"
    run("tune", "--job", job.pk, "run_at=2090-05-20T15:30+00:00")
    run("tune", "--task", noop.name, "num_slots=3", "paused=yes")

    queue = TenantQueue.objects.get(tenant="acme")
    assert (queue.num_slots, queue.max_per_second) == (10, None)
    job = Job.objects.get(pk=job.pk)
    assert job.run_at is not None
    assert (job.priority, job.run_at.year, job.run_at > timezone.now()) == (50, 2090, True)
    control = TaskControl.objects.get()
    assert (control.num_slots, control.paused) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pause"], "with one of --queue, --task, --session, --limit-user, --monitor"),
        (["pause", "--queue=mail", "--task=x"], "--queue and --task are given: choose"),
        (["pause", "--task=x", "--tenant=acme"], "--tenant belongs to --queue, --session or"),
        (["pause", "--monitor=x"], "'x' is not the number of a job or a monitor"),
        (["pause", "--queue=gone"], "no tenant has"),
        (["cancel"], "give either numbers of jobs, or --monitor"),
        (["retry", "1", "--monitor=2"], "give either numbers of jobs, or --monitor"),
        (["tune", "--queue=mail"], "the following arguments are required: COLUMN=VALUE"),
        (["tune", "--queue=mail", "slots"], "'slots' is not COLUMN=VALUE, as in num_slots=10"),
        (["tune", "--queue=mail", "tenant=x"], "'tenant' is not a column"),
        (["tune", "--queue=mail", "paused=maybe"], "use paused=yes or paused=no"),
        (["tune", "--queue=mail", "max_per_second=inf"], "use none for no limit"),
        (["tune", "--job=1", "run_at=soon"], "give seconds from now, or a time such as"),
        (["tune", "--queue=mail", "slots=3"], "slots"),
        (["tune", "--queue=mail", "num_slots=-3"], "num_slots: Ensure"),
    ],
)
def test_wrong_call_is_an_error(arguments: list[str], message: str) -> None:
    make_queue("acme", "mail")

    with pytest.raises(CommandError, match=message):
        run(*arguments)

    assert not Change.objects.exists()
