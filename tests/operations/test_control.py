"""What operators do to jobs and queues: each change names the state that it expects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue.exceptions import InvalidArgument, InvalidOption, QueueRetired
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations import control, maintain
from django_tenantqueue.queries.control import QueueLoad
from django_tenantqueue.states import ACTIVE, FINAL, TRANSITIONS, WAITING, State
from django_tenantqueue.status import queue_loads
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_jobs, make_queue, state_of
from tests.testapp.tasks import fail, noop

pytestmark = pytest.mark.django_db
STATES = [state.value for state in State]


@pytest.mark.parametrize("state", STATES)
def test_job_is_cancelled_when_it_waits_and_asked_to_stop_when_it_runs(state):
    job = make_job(state=state)

    cancelled, asked = control.cancel([job.pk])

    waits, runs = State(state) in WAITING, State(state) in ACTIVE
    assert (cancelled, asked) == ([job.pk] if waits else [], [job.pk] if runs else [])
    assert state_of(job.pk) == ("cancelled" if waits else state)
    job.refresh_from_db()
    assert (job.cancel_requested_at is not None) == (waits or runs)


@pytest.mark.parametrize("state", STATES)
def test_job_is_ready_again_when_it_failed_or_was_cancelled_and_is_retried(state):
    job = make_job(state=state, errors=[{"message": "first"}], worker_id=5, result={"a": 1})

    changed = control.retry([job.pk])

    if state not in ("error", "cancelled"):
        assert changed == []
        assert state_of(job.pk) == state
        return
    assert changed == [job.pk]
    again = Job.objects.get(pk=job.pk)
    assert (again.state, again.attempt, again.worker_id) == ("ready", 0, None)
    assert (again.finished_at, again.started_at, again.queued_at) == (None, None, None)
    assert (again.result, again.cancel_requested_at) == (None, None)
    assert again.errors == [{"message": "first"}]
    assert again.claim_seq == 1


def test_retried_job_runs_when_it_is_claimed():
    job = fail.using(max_attempts=1).delay()
    run_pending()
    control.retry([job.pk])

    run_pending()

    assert (job.refresh().state, job.attempt, len(job.errors)) == ("error", 1, 2)


@pytest.mark.parametrize("state", STATES)
def test_job_is_ready_when_it_was_scheduled_and_is_to_run_now(state):
    job = make_job(state=state, run_at=timezone.now() + timedelta(days=1))

    changed = control.run_now([job.pk])

    assert changed == ([job.pk] if state in ("scheduled", "held") else [])
    assert state_of(job.pk) == ("ready" if state == "scheduled" else state)
    if changed:
        assert Job.objects.get(pk=job.pk).run_at <= timezone.now()


@pytest.mark.parametrize("state", STATES)
def test_priority_changes_when_the_job_waits(state):
    job = make_job(state=state)

    changed = control.change_priority([job.pk], 7)

    assert changed == ([job.pk] if State(state) in WAITING else [])
    job.refresh_from_db()
    assert (job.priority, job.lane) == ((7, 7) if changed else (240, 240))


@pytest.mark.parametrize("state", STATES)
def test_queue_changes_when_the_job_waits(state):
    job = make_job(state=state)

    changed = control.change_queue([job.pk], tenant="globex", queue="mail")

    assert changed == ([job.pk] if state in ("ready", "scheduled") else [])
    moved = Job.objects.get(pk=job.pk).queue
    assert ((moved.tenant, moved.name) == ("globex", "mail")) == bool(changed)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("hours", "then"), [(1, "scheduled"), (-1, "ready")])
def test_time_changes_when_the_job_is_ready_or_scheduled(state, hours, then):
    job = make_job(state=state)
    moment = timezone.now() + timedelta(hours=hours)

    changed = control.change_run_at([job.pk], moment)

    assert changed == ([job.pk] if State(state) in WAITING else [])
    if changed:
        job.refresh_from_db()
        assert (job.state, job.run_at) == ("held" if state == "held" else then, moment)


def test_change_is_refused_when_its_value_is_wrong():
    job = make_job()

    with pytest.raises(InvalidOption, match="priority=40000"):
        control.change_priority([job.pk], 40000)
    with pytest.raises(InvalidOption, match="is naive"):
        control.change_run_at([job.pk], timezone.now().replace(tzinfo=None))
    with pytest.raises(InvalidOption, match="its year must be from 1900 to 8999"):
        control.change_run_at([job.pk], datetime.max.replace(tzinfo=UTC))
    make_queue("old", "mail", retired=True)
    with pytest.raises(QueueRetired, match="'mail' of tenant 'old' is retired"):
        control.change_queue([job.pk], tenant="old", queue="mail")
    assert Job.objects.get(pk=job.pk).priority == 240


@pytest.mark.parametrize(
    "where",
    [
        {"tenant": None, "queue": "mail"},
        {"tenant": "a\x00", "queue": "mail"},
        {"tenant": "t" * 201, "queue": "mail"},
        {"tenant": "acme", "queue": ""},
        {"tenant": "acme", "queue": "q" * 101},
        {"tenant": "acme", "queue": 7},
    ],
)
def test_no_queue_is_made_when_jobs_are_moved_to_what_can_be_none(where):
    job = make_job()

    with pytest.raises(InvalidOption, match=r"tenant|queue"):
        control.change_queue([job.pk], **where)

    assert TenantQueue.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: control.cancel(ids)[0],
        control.run_now,
        control.retry,
        lambda ids: control.change_priority(ids, 5),
    ],
)
def test_nothing_changes_when_no_id_is_known(change):
    assert change([]) == []
    assert change([987654321]) == []


def test_ids_may_repeat_in_any_order_when_jobs_are_changed():
    ids = make_jobs(make_queue(), 3)

    assert control.change_priority(iter([*reversed(ids), *ids]), 5) == ids


def test_change_is_undone_when_its_transaction_is_rolled_back():
    job = make_job()
    with transaction.atomic():
        control.cancel([job.pk])
        transaction.set_rollback(True)

    assert state_of(job.pk) == "ready"


# queues


def test_only_the_named_column_is_written_when_a_queue_is_tuned():
    queue = make_queue(num_slots=5)
    TenantQueue.objects.filter(pk=queue.pk).update(weight=9)

    control.tune_queue(queue.pk, num_slots=8)

    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight, queue.paused) == (8, 9, False)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"tenant": "x"}, InvalidOption, "'tenant' cannot be tuned: it must be one of"),
        ({"num_slots": -1}, ValidationError, "greater than or equal to 0"),
        ({"num_slots": 1_000_001}, ValidationError, "less than or equal to 1000000"),
        ({"num_slots": "many"}, ValidationError, "must be an integer"),
        ({"weight": 0}, ValidationError, "greater than or equal to 1"),
        ({"max_per_second": 0}, ValidationError, "greater than or equal to 0.0001"),
        ({"burst": 0}, ValidationError, "greater than or equal to 1"),
        ({"max_waiting": -1}, ValidationError, "greater than or equal to 0"),
        ({"paused": "perhaps"}, ValidationError, "must be either True or False"),
    ],
    ids=str,
)
def test_queue_is_left_as_it_was_when_a_value_is_wrong(changes, error, message):
    queue = make_queue()

    with pytest.raises(error, match=message):
        control.tune_queue(queue.pk, **changes)

    assert TenantQueue.objects.filter(pk=queue.pk, num_slots=5, weight=1, paused=False).exists()


def test_nothing_is_written_when_nothing_is_tuned(django_assert_num_queries):
    with django_assert_num_queries(0):
        control.tune_queue(1)


def test_queue_is_named_when_it_does_not_exist():
    with pytest.raises(TenantQueue.DoesNotExist):
        control.tune_queue(987654321, num_slots=1)


@pytest.mark.parametrize(
    "column", ["num_slots", "weight", "max_per_second", "burst", "max_waiting"]
)
def test_database_refuses_when_a_value_is_written_past_the_forms(column):
    queue = make_queue()

    with pytest.raises(IntegrityError, match=f"tenantqueue_queue_{column}"):
        TenantQueue.objects.filter(pk=queue.pk).update(**{column: -1})


def test_queues_are_paused_and_resumed_when_asked():
    pending = [make_queue().pk, make_queue(paused=True).pk]
    noop.using(tenant=TenantQueue.objects.get(pk=pending[0]).tenant).delay()

    assert control.pause(pending) == pending[:1]
    assert run_pending() == []
    assert control.resume(pending) == pending
    assert len(run_pending()) == 1
    assert control.resume(pending) == []


def test_waiting_jobs_still_run_when_their_queue_is_retired():
    job = noop.using(tenant="acme").delay()
    control.tune_queue(job.queue_id, retired=True)

    assert [done.pk for done in run_pending()] == [job.pk]


def test_counts_stop_at_their_limit_when_there_are_many_jobs():
    queue, other = make_queue(), make_queue()
    make_jobs(queue, 3, state="running")
    make_jobs(queue, 7, priority=100)
    make_jobs(queue, 7, priority=200)
    make_jobs(queue, 9, state="success")

    found = queue_loads.loads("default", [queue.pk, other.pk])

    assert (found[queue.pk].running, found[queue.pk].waiting) == (3, 14)
    assert (found[other.pk].running, found[other.pk].waiting) == (0, 0)
    assert queue_loads.count_queues("default", [queue.pk], running=2, waiting=5) == [
        QueueLoad(queue.pk, 2, 5, pytest.approx(0, abs=60))
    ]


def test_unknown_names_are_returned_when_some_are_known():
    make_queue("acme", "mail")
    make_queue("globex", "mail")

    assert queue_loads.unknown_queues("default", ["mail", "nowhere", "nowhere"]) == ["nowhere"]


# duties


def test_due_jobs_become_ready_when_they_are_promoted():
    due = make_jobs(make_queue(), 3, state="scheduled", run_at=timezone.now())
    later = make_job(state="scheduled", run_at=timezone.now() + timedelta(hours=1))

    assert maintain.promote("default") == 3

    assert {state_of(job_id) for job_id in due} == {"ready"}
    assert state_of(later.pk) == "scheduled"
    assert 3500 < (maintain.seconds_to_next_due("default") or 0) <= 3600


def test_there_is_no_next_job_when_none_is_scheduled():
    make_job()

    assert maintain.seconds_to_next_due("default") is None


def test_lanes_follow_when_the_scope_of_priority_changes(settings):
    waiting = make_jobs(make_queue(), 3, priority=7)
    running = make_job(state="running", priority=7, lane=7)

    settings.TENANTQUEUE = {"PRIORITY_SCOPE": "tenant"}
    assert maintain.relane("default", most=2) == 2
    assert maintain.relane("default", most=2) == 1
    assert maintain.relane("default") == 0
    assert set(Job.objects.filter(pk__in=waiting).values_list("lane", flat=True)) == {0}
    assert Job.objects.get(pk=running.pk).lane == 7

    settings.TENANTQUEUE = {}
    assert maintain.relane("default") == 3


# the table


def test_transitions_lead_everywhere_when_they_are_followed():
    reached = {State.READY}
    while more := {after for state in reached for after in TRANSITIONS[state]} - reached:
        reached |= more

    assert reached == set(State) == set(TRANSITIONS)
    assert all(TRANSITIONS[state] <= {State.READY, State.HELD} for state in FINAL)


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "success"},
        {"final": True},
        {"finished_at": timezone.now()},
        {"state": "running"},
        {"state": "held"},
        {"held_by": "session"},
        {"attempt": 6},
        {"attempt": -1},
        {"max_attempts": 0},
    ],
)
def test_database_refuses_when_columns_contradict_each_other(columns):
    job = make_job()

    with pytest.raises(IntegrityError, match="tenantqueue_job"):
        Job.objects.filter(pk=job.pk).update(**columns)


@pytest.mark.parametrize("column", ["run_at", "expires_at"])
@pytest.mark.parametrize("value", ["infinity", "-infinity", "9999-12-31 23:59:59+00"])
def test_time_that_python_cannot_show_is_refused_by_the_table(column, value):
    job = make_job()

    with (
        pytest.raises(IntegrityError, match="tenantqueue_job_times"),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"UPDATE tenantqueue_job SET {column} = %s WHERE id = %s", [value, job.pk])


def test_operations_take_rows_ids_and_one_alone():
    queue = make_queue("acme")
    first, second = make_job(queue), make_job(queue)

    assert control.cancel([first, second.pk]) == ([first.pk, second.pk], [])
    assert control.retry(first) == [first.pk]
    assert control.retry(Job.objects.filter(pk=second.pk)) == [second.pk]
    assert control.change_priority(first.pk, 7) == [first.pk]
    assert (control.pause(queue), control.pause([queue.pk])) == ([queue.pk], [])
    assert control.resume(queue) == [queue.pk]
    control.tune_queue(queue, num_slots=7)
    assert TenantQueue.objects.get(pk=queue.pk).num_slots == 7


@pytest.mark.parametrize("wrong", ["7", ["7"], None, [None], [True], 1.5, object()])
def test_operations_name_what_is_no_row(wrong):
    with pytest.raises(InvalidArgument, match=r"is not an id or a row \(job\): give ids or rows"):
        control.cancel(wrong)
    with pytest.raises(InvalidArgument, match=r"is not an id or a row \(tenant queue\)"):
        control.pause(make_job())


def test_queue_is_made_or_changed(settings):
    settings.TENANTQUEUE = {"STRICT_QUEUES": True, "DEFAULT_TENANT_SLOTS": 4}

    made = control.make_queue("acme", "mail", weight=3)
    changed = control.make_queue("acme", "mail", num_slots=9)

    assert (made.num_slots, made.weight) == (4, 3)
    assert (changed.pk, changed.num_slots, changed.weight) == (made.pk, 9, 3)
    assert list(Change.objects.order_by("pk").values_list("action", flat=True)) == [
        *("add", "tune"),
        "tune",
    ]
    with pytest.raises(InvalidOption, match="cannot be tuned"):
        control.make_queue("acme", "other", colour=1)
    assert not TenantQueue.objects.filter(name="other").exists()


@override_settings(TENANTQUEUE={})
def test_queues_of_no_tenant_are_made_without_a_limit():
    noop.using(queue="mail").delay()
    noop.using(queue="mail", tenant="acme").delay()
    control.make_queue("", "later")
    control.make_queue("acme", "later")

    slots = TenantQueue.objects.values_list("tenant", "name", "num_slots")
    assert {*slots} == {
        *(("", "mail", None), ("acme", "mail", 5)),
        *(("", "later", None), ("acme", "later", 5)),
    }
