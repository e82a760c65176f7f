"""manage.py tenantqueue bulk: the same bulk actions from the shell."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_tenantqueue.management.subcommands.bulk import HELP
from django_tenantqueue.models import Change, Job
from django_tenantqueue.states import State
from django_tenantqueue.status.job_conditions import CONDITIONS
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_jobs, make_queue, state_of, states_of

pytestmark = pytest.mark.django_db


def bulk(*arguments: str, **options: Any) -> str:
    out = StringIO()
    call_command("tenantqueue", "bulk", *arguments, stdout=out, **options)
    return out.getvalue()


def test_job_is_started_in_the_name_of_the_shell_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "deploy")
    ids = make_jobs(make_queue("acme", paused=True), 3, state=State.ERROR, task="reports.make")
    others = make_jobs(make_queue("zeta", paused=True), 2, state=State.ERROR, task="reports.make")

    said = bulk("retry", "--state=error", "--task=reports.make", "--tenant=acme")

    job = Job.objects.get(queue__name="admin")
    assert said.startswith(
        f"job #{job.pk} performs the action once a worker runs it: see its page in"
    )
    run_pending()
    assert set(states_of(ids).values()) == {State.READY}
    assert set(states_of(others).values()) == {State.ERROR}
    change = Change.objects.get()
    assert (change.actor, change.source, change.object_count) == ("deploy", "command", 3)


def test_dry_run_counts_and_changes_nothing() -> None:
    ids = make_jobs(make_queue("acme"), 3, state=State.ERROR)
    make_jobs(make_queue("acme", "mail"), 3, state=State.SUCCESS)

    assert bulk("retry", "--tenant=acme", "--dry-run") == "3 jobs match and can be changed\n"
    assert bulk("delete", "--all", "--dry-run") == "6 jobs match and can be changed\n"
    with pytest.raises(CommandError, match="Tenant 'zeta' has no queue"):
        bulk("retry", "--tenant=zeta", "--dry-run")
    assert set(states_of(ids).values()) == {State.ERROR}
    assert not Job.objects.filter(queue__name="admin").exists()


def test_empty_tenant_is_no_tenant_and_other_empty_filters_are_refused() -> None:
    ids = make_jobs(make_queue("", paused=True), 2)
    others = make_jobs(make_queue("acme", paused=True), 3)

    for empty in ("--queue=", "--task=", "--state= ", "--queue-id="):
        with pytest.raises(CommandError, match="is empty: give a value, or leave it out"):
            bulk("cancel", empty)
    with pytest.raises(CommandError, match="Tenant ' ' has no queue"):
        bulk("cancel", "--tenant= ")
    assert bulk("cancel", "--tenant=", "--dry-run") == "2 jobs match and can be changed\n"
    bulk("cancel", "--tenant=")
    run_pending()

    assert set(states_of(ids).values()) == {State.CANCELLED}
    assert set(states_of(others).values()) == {State.READY}


def test_values_are_passed_on() -> None:
    waiting = make_jobs(make_queue("acme", paused=True), 2)
    mail = make_queue("zeta", "mail", paused=True)

    bulk("change_priority", "--all", "--priority=120")
    run_pending()
    bulk("move", "--tenant=acme", "--to-queue=mail", "--to-tenant=zeta")
    run_pending()

    assert Job.objects.filter(pk__in=waiting, queue=mail, priority=120).count() == 2


def test_no_job_is_started_when_none_matches() -> None:
    make_jobs(make_queue("acme"), 2, state=State.SUCCESS)

    said = bulk("cancel", "--tenant=acme")

    assert said == "0 jobs match and can be changed: no job was started\n"
    assert json.loads(bulk("cancel", "--tenant=acme", format="json")) == {"job": None}
    assert not Job.objects.filter(queue__name="admin").exists()


def test_what_was_started_or_counted_is_printed_as_json() -> None:
    make_jobs(make_queue("acme", paused=True), 2)

    counted = json.loads(bulk("cancel", "--tenant=acme", "--dry-run", "--format=json"))
    started = json.loads(bulk("cancel", "--tenant=acme", "--format=json"))

    assert counted == {"matching": {"jobs": 2, "is_exact": True}}
    assert started == {"job": Job.objects.get(queue__name="admin").pk}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retry"], "no filter is given: add one, or --all"),
        (["retry", "--all", "--priority=1"], "takes no values"),
        (["move", "--all"], "needs the value 'queue'"),
        (["retry", "--state=lost"], "Unknown state 'lost'. Known states: unfinished"),
        (["retry", "--all", "--database=other"], "is not TENANTQUEUE['DATABASE']"),
        (["explode", "--all"], "invalid choice: 'explode'"),
    ],
)
def test_nothing_is_started_when_something_is_wrong(arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said.replace("[", r"\[")):
        bulk(*arguments)

    assert not Job.objects.exists()


def test_ready_jobs_are_chosen_by_their_state() -> None:
    job = make_job()

    bulk("cancel", "--state=ready")
    run_pending()

    assert state_of(job.pk) == "cancelled"


def test_command_takes_the_filters_of_columns() -> None:
    queue = make_queue("acme")
    make_jobs(queue, 2, state=State.ERROR, labels=["nightly"], priority=120)
    make_jobs(queue, 3, state=State.ERROR, errors=[{"class": "ValueError"}])

    for filters, count in (
        (["--label=nightly"], 2),
        (["--of-priority=120", "--created-from=1h"], 2),
        (["--error", "ValueError", "--ended-from", "2h"], 3),
        (["--created-from=2100-01-01"], 0),
    ):
        assert bulk("retry", *filters, "--dry-run").startswith(f"{count} jobs match")
    with pytest.raises(CommandError, match="'soon' is not a time"):
        bulk("retry", "--ended-from=soon")


def test_every_filter_of_columns_is_an_option() -> None:
    assert CONDITIONS.keys() == HELP.keys()
