"""Unique jobs in one connection: keys, strategies, bulk, and what lets a key go."""

from __future__ import annotations

import logging
import pickle
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_tenantqueue import (
    DuplicateJob,
    Job,
    Serial,
    TaskHooks,
    Unique,
    current_job,
    delayed,
    task,
)
from django_tenantqueue.batch_sizes import BATCH
from django_tenantqueue.calls.arguments import encode_args
from django_tenantqueue.calls.sources import describe_method
from django_tenantqueue.calls.unique import MODES
from django_tenantqueue.calls.unique_key import make_key
from django_tenantqueue.exceptions import InvalidOption, QueueRetired
from django_tenantqueue.models import Session, UniqueKey
from django_tenantqueue.operations import control
from django_tenantqueue.operations.gates import Sweep
from django_tenantqueue.operations.unique import KeyPruning
from django_tenantqueue.queries import enqueue as enqueue_queries
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import make_queue
from tests.testapp.models import Report
from tests.testapp.tasks import add, echo, fail, noop

pytestmark = pytest.mark.django_db

EXECUTED = Unique("until_executed", ttl=600)


def key_of(*args: Any, made_by: Any = add, tenant: str = "", **kwargs: Any) -> str:
    return make_key(EXECUTED, made_by.source, tenant, args, kwargs, encode_args(args, kwargs))


# keys


def test_job_is_the_same_however_its_arguments_are_given() -> None:
    keys = {
        key_of(1),
        key_of(1, 0),
        key_of(first=1),
        key_of(1, second=0),
        key_of(second=0, first=1),
    }

    assert len(keys) == 1


def test_jobs_differ_by_arguments_task_and_tenant() -> None:
    keys = {
        key_of(1),
        key_of(2),
        key_of("1"),
        key_of(1, 1),
        key_of(1, tenant="acme"),
        key_of({"a": 1}, made_by=echo),
        key_of({"a": 2}, made_by=echo),
    }

    assert len(keys) == 7


def test_order_of_a_dict_does_not_count() -> None:
    jobs = [
        echo.using(unique=EXECUTED).delay(value) for value in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]

    assert jobs[0].pk == jobs[1].pk


def test_key_shows_the_tenant_and_the_task() -> None:
    job = noop.using(unique=EXECUTED, tenant="acme").delay().refresh()

    assert job.unique_key.startswith("acme/tests.testapp.tasks.noop:")
    assert job.unique_mode == "until_executed"


def test_own_key_counts_for_all_tasks_of_the_tenant() -> None:
    unique = Unique("until_executed", key="nightly")
    first = noop.using(unique=unique, tenant="acme").delay()
    second = echo.using(unique=unique, tenant="acme").delay(1)
    other = noop.using(unique=unique, tenant="zeta").delay()

    assert (second.pk, second.task) == (first.pk, noop.name)
    assert other.pk != first.pk


def test_callable_makes_the_key_of_the_arguments() -> None:
    bound = add.using(unique=Unique("until_executed", key=lambda first, second=0: first))
    same, other = bound.delay(1, second=5), bound.delay(2)

    assert bound.delay(1).pk == same.pk
    assert other.pk != same.pk


@pytest.mark.parametrize("made", [None, 1.5, "", "x" * 201, "\x00", "\ud800"], ids=ascii)
def test_call_is_refused_when_its_callable_makes_no_key(made: Any) -> None:
    with pytest.raises(InvalidOption, match="unique key"):
        noop.using(unique=Unique("until_executed", key=lambda: made)).delay()


def test_call_is_unique_when_a_default_cannot_be_stored() -> None:
    marker = object()

    @task(name="tests.with_marker", unique=EXECUTED)
    def with_marker(value: int, given: object = marker) -> None:
        """Do nothing."""

    assert with_marker.delay(1).pk == with_marker.delay(1).pk != with_marker.delay(2).pk


def test_method_of_an_instance_is_unique() -> None:
    report, other = (Report.objects.create(title=title) for title in "ab")
    first = delayed(report, unique=EXECUTED).execute("pdf")

    assert delayed(report, unique=EXECUTED).execute("pdf").pk == first.pk
    assert report.delay(unique=EXECUTED).execute("pdf").duplicate
    assert delayed(report, unique=EXECUTED).execute("html").pk != first.pk
    assert delayed(other, unique=EXECUTED).execute("pdf").pk != first.pk
    assert (
        make_key(
            EXECUTED, describe_method(report, "execute"), "", ("pdf",), {}, '{"args": ["pdf"]}'
        )
        == first.refresh().unique_key
    )


def test_job_is_no_longer_unique_when_a_call_says_so() -> None:
    bound = noop.using(unique=EXECUTED)

    assert bound.delay().pk != bound.using(unique=None).delay().pk


# what is returned


def test_same_unfinished_job_is_returned_within_ten_minutes() -> None:
    bound = echo.using(unique=EXECUTED, tenant="acme")
    job = bound.delay(7)
    again = bound.delay(7)

    assert not job.duplicate
    assert again.duplicate
    assert (again.pk, again.state, again.final) == (job.pk, "ready", False)
    assert again.task == echo.name  # read when it is asked for
    assert again.refresh().duplicate
    assert Job.objects.count() == 1


def test_ended_job_is_returned_when_its_key_outlives_it() -> None:
    bound = noop.using(unique=Unique("until_expired", ttl=600))
    job = bound.delay()
    run_pending()
    again = bound.delay()

    assert again.duplicate
    assert (again.pk, again.state, again.final) == (job.pk, "success", True)


def test_hook_is_called_once_when_the_second_job_is_a_duplicate() -> None:
    called: list[int] = []

    class Hooks(TaskHooks):
        def enqueue(self, job: Job) -> None:
            called.append(job.pk)

    @task(name="tests.with_hooks", unique=EXECUTED, hooks=Hooks())
    def with_hooks() -> None:
        """Do nothing."""

    job = with_hooks.delay()
    with_hooks.delay()

    assert called == [job.pk]


def test_keys_are_let_go_with_the_ends_of_their_jobs() -> None:
    kept = noop.using(unique=Unique("until_expired", ttl=600, key="kept")).delay()
    for mode in ("until_executing", "until_executed", "until_and_while_executing"):
        noop.using(unique=Unique(mode, key=mode)).delay()
    assert UniqueKey.objects.count() == 4
    run_pending()

    assert [key.job_id for key in UniqueKey.objects.all()] == [kept.pk]


def test_job_that_enqueues_itself_gets_its_key_when_it_has_started() -> None:
    unique = Unique("until_executing", key="chain")
    seen: list[tuple[int, int]] = []

    @task(name="tests.chain", unique=unique)
    def chain(left: int) -> None:
        if left:
            seen.append((current_job().id, chain.delay(left - 1).pk))

    chain.delay(3)
    run_pending()

    assert len(seen) == 3
    assert all(this != after for this, after in seen)


# strategies


def test_error_names_the_job_when_the_strategy_is_raise() -> None:
    bound = noop.using(unique=Unique("until_executed", on_conflict="raise"))
    job = bound.delay()

    with pytest.raises(DuplicateJob, match=f"job {job.pk} has the unique key '/tests") as caught:
        bound.delay()
    assert caught.value.job_id == job.pk
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.job_id, copied.key) == (job.pk, caught.value.key)


def test_new_job_ends_as_cancelled_when_the_strategy_is_reject() -> None:
    bound = echo.using(unique=Unique("until_executed", on_conflict="reject"), labels=["x"])
    job = bound.delay(1)
    rejected = bound.delay(1)

    assert not rejected.duplicate
    assert (rejected.pk != job.pk, rejected.state, rejected.final) == (True, "cancelled", True)
    row = rejected.refresh()
    assert row.last_error["message"] == f"job {job.pk} had its unique key"
    assert row.last_error["class"] == "django_tenantqueue.exceptions.DuplicateJob"
    assert (row.args, row.labels, row.attempt) == ({"args": [1]}, ["x"], 0)
    assert [ran.pk for ran in run_pending()] == [job.pk]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.startswith("until_")])
def test_waiting_twin_is_replaced_when_the_strategy_is_replace(mode: str) -> None:
    unique = Unique(mode, ttl=600, key="k", on_conflict="replace")
    old = echo.using(unique=unique).delay("old")
    new = echo.using(unique=unique).delay("new")

    assert new.pk != old.pk
    assert not new.duplicate
    assert old.refresh().state == "cancelled"
    assert old.last_error["message"] == "replaced by a later job with its unique key"
    assert UniqueKey.objects.get().job_id == new.pk
    assert [(ran.pk, ran.result) for ran in run_pending()] == [(new.pk, "new")]


def test_twin_gets_the_new_time_when_the_strategy_is_reschedule() -> None:
    bound = noop.using(unique=Unique("until_executed", on_conflict="reschedule"))
    later = timezone.now() + timedelta(hours=2)
    job = bound.using(run_at=timedelta(hours=1)).delay()
    again = bound.using(run_at=later).delay()

    assert (again.pk, again.duplicate) == (job.pk, True)
    assert (job.refresh().state, job.run_at) == ("scheduled", later)
    bound.using(run_at=timedelta(minutes=30)).delay()
    assert job.refresh().run_at < later - timedelta(hours=1)
    bound.delay()
    assert job.refresh().state == "ready"


def test_duplicate_is_logged_when_the_strategy_is_log(caplog: pytest.LogCaptureFixture) -> None:
    bound = noop.using(unique=Unique("until_executed", key="k", on_conflict="log"), tenant="acme")
    job = bound.delay()
    assert not caplog.records
    with caplog.at_level(logging.INFO, "django_tenantqueue"):
        assert bound.delay().pk == job.pk

    assert caplog.messages == [f"not enqueued: job {job.pk} has the unique key 'acme/k'"]


# bulk


def test_each_input_gets_the_id_of_its_job_in_bulk() -> None:
    bound = echo.using(unique=EXECUTED)
    old = bound.delay(3)
    ids = bound.enqueue_many([1, 2, 1, 3, 2, 4])

    assert ids == [ids[0], ids[1], ids[0], old.pk, ids[1], ids[5]]
    assert ids[0] < ids[1] < ids[5]
    assert Job.objects.count() == 4
    assert {job.args["args"][0]: job.pk for job in Job.objects.all()} == {
        1: ids[0],
        2: ids[1],
        3: old.pk,
        4: ids[5],
    }


def test_each_job_of_a_bulk_call_has_its_own_exclusive_key() -> None:
    ids = echo.using(unique=Unique("while_executing")).enqueue_many([1, 2, 1])
    run_commit_hooks("default")
    jobs = list(Job.objects.filter(pk__in=ids).order_by("pk"))

    assert [job.state for job in jobs] == ["ready", "ready", "held"]
    assert jobs[0].exclusive_key == jobs[2].exclusive_key != jobs[1].exclusive_key
    assert [job.pk for job in jobs] == ids


def test_nothing_is_stored_when_a_bulk_call_meets_a_duplicate_and_raises() -> None:
    bound = echo.using(unique=Unique("until_executed", on_conflict="raise"))
    with pytest.raises(DuplicateJob, match="an earlier input") as caught:
        bound.enqueue_many([1, 2, 1])
    assert caught.value.job_id is None
    job = bound.delay(5)
    with pytest.raises(DuplicateJob, match=f"job {job.pk} "):
        bound.enqueue_many([4, 5])

    assert [row.pk for row in Job.objects.all()] == [job.pk]
    assert UniqueKey.objects.count() == 1


def test_duplicates_of_a_bulk_call_are_stored_when_the_strategy_is_reject() -> None:
    ids = echo.using(unique=Unique("until_executed", on_conflict="reject")).enqueue_many([1, 2, 1])

    assert len(set(ids)) == 3
    rejected = Job.objects.get(pk=ids[2])
    assert (rejected.state, rejected.args) == ("cancelled", {"args": [1]})
    assert rejected.last_error["message"] == f"job {ids[0]} had its unique key"


def test_last_of_a_bulk_call_counts_when_the_strategy_is_replace() -> None:
    unique = Unique("until_executed", key=lambda value: value[0], on_conflict="replace")
    old = echo.using(unique=unique).delay("a0")
    ids = echo.using(unique=unique).enqueue_many(["a1", "b1", "a2"])

    assert ids[0] == ids[2]
    assert old.refresh().state == "cancelled"
    assert sorted(ran.result for ran in run_pending()) == ["a2", "b1"]


def test_duplicates_are_found_over_the_batches_of_a_bulk_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.enqueue.BULK_ROWS", 2)
    ids = echo.using(unique=EXECUTED).enqueue_many([1, 2, 3, 1, 2])

    assert ids == [*ids[:3], *ids[:2]]


# what lets a key go


def test_rescheduled_head_goes_behind_its_neighbours_in_the_session() -> None:
    head = add.using(session="s", unique=Unique("until_executing")).delay(1)
    other = add.using(session="s").delay(2)
    run_commit_hooks("default")
    assert (head.refresh().state, other.refresh().state) == ("ready", "held")

    again = Unique("until_executing", on_conflict="reschedule")
    existing_job = add.using(session="s", unique=again).delay(1)

    assert existing_job.pk == head.pk
    run_commit_hooks("default")
    assert (head.refresh().state, other.refresh().state) == ("held", "ready")
    assert [job.pk for job in run_pending()] == [other.pk, head.pk]


@pytest.mark.parametrize("on_conflict", ["return", "log", "reschedule"])
def test_duplicate_in_a_retired_queue_is_returned(on_conflict: Any) -> None:
    queue = make_queue("acme", "retired")
    unique = Unique("until_executed", on_conflict=on_conflict)
    first = add.using(tenant="acme", queue="retired", unique=unique).delay(1)
    control.tune_queue(queue.pk, retired=True)

    second = add.using(tenant="acme", queue="retired", unique=unique).delay(1)

    assert (second.pk, second.duplicate) == (first.pk, True)


def test_retired_queue_rejects_a_duplicate_and_replaces_none() -> None:
    queue = make_queue("acme", "retired")
    first = add.using(tenant="acme", queue="retired", unique=EXECUTED).delay(1)
    control.tune_queue(queue.pk, retired=True)
    reject = Unique("until_executed", on_conflict="reject")
    replace = Unique("until_executed", on_conflict="replace")

    rejected = add.using(tenant="acme", queue="retired", unique=reject).delay(1)
    with pytest.raises(QueueRetired):
        add.using(tenant="acme", queue="retired", unique=replace).delay(1)

    assert (rejected.refresh().state, first.refresh().state) == ("cancelled", "ready")


def test_retired_queue_takes_no_unique_job() -> None:
    queue = make_queue("acme")
    noop.using(unique=EXECUTED, tenant="acme").delay()
    type(queue).objects.update(retired=True)

    with pytest.raises(QueueRetired):
        echo.using(unique=EXECUTED, tenant="acme").delay(1)
    with pytest.raises(QueueRetired):
        echo.using(unique=EXECUTED, tenant="acme").enqueue_many([1, 2])


def test_key_blocks_again_when_an_operator_brings_its_job_back() -> None:
    bound = fail.using(unique=Unique("until_executed"), max_attempts=1)
    job = bound.delay()
    run_pending()
    assert not UniqueKey.objects.exists()
    control.retry([job.pk])

    assert bound.delay().pk == job.pk


def test_job_comes_back_without_its_key_when_another_one_has_it() -> None:
    bound = fail.using(unique=Unique("until_executed"), max_attempts=1)
    job = bound.delay()
    run_pending()
    other = bound.delay()
    assert control.retry([job.pk]) == [job.pk]

    assert bound.delay().pk == other.pk
    assert {ran.pk for ran in run_pending()} == {job.pk, other.pk}


@pytest.mark.parametrize("mode", ["until_executing", "until_executed"])
def test_job_comes_back_with_its_key_when_the_one_that_had_it_is_cancelled(mode: str) -> None:
    bound = fail.using(unique=Unique(mode, ttl=600), max_attempts=1)
    job = bound.delay()
    run_pending()
    control.cancel([bound.delay().pk])
    assert UniqueKey.objects.get().job_id != job.pk
    control.retry([job.pk])

    assert bound.delay().pk == job.pk
    key = UniqueKey.objects.get()
    assert (key.job_id, key.mode, key.expires_at) == (job.pk, mode, None)


def test_job_comes_back_without_its_key_when_that_outlives_a_cancelled_one() -> None:
    job = noop.using(unique=Unique("until_executed", key="k")).delay()
    run_pending()
    kept = noop.using(unique=Unique("until_expired", ttl=600, key="k")).delay()
    control.cancel([kept.pk])
    Job.objects.filter(pk=job.pk).update(state="error")
    control.retry([job.pk])

    assert UniqueKey.objects.get().job_id == kept.pk


def test_keys_that_block_nobody_are_pruned() -> None:
    def make(mode: str, key: str, **more: Any) -> Job:
        return noop.using(unique=Unique(mode, key=key, **more)).delay()

    waits = make("until_executed", "waits")
    over = make("until_executed", "over", ttl=60)
    cancelled = make("until_executing", "cancelled")
    expired = make("until_expired", "expired", ttl=60)
    kept = make("until_expired", "kept", ttl=60)
    control.cancel([cancelled.pk, kept.pk])
    UniqueKey.objects.filter(job_id__in=[over.pk, expired.pk]).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )

    assert KeyPruning().step("default") == 3
    assert set(UniqueKey.objects.values_list("job_id", flat=True)) == {waits.pk, kept.pk}
    assert KeyPruning().step("default") == 0


def test_pruning_goes_on_where_its_last_step_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.unique.BATCH", 3)
    ids = echo.using(unique=EXECUTED).enqueue_many(range(8))
    control.cancel(ids[::2])
    pruning = KeyPruning()
    steps = [pruning.step("default") for _ in range(3)]

    assert sum(steps) == 4
    assert max(steps) <= 3 < BATCH
    assert pruning.after == ""
    assert set(UniqueKey.objects.values_list("job_id", flat=True)) == set(ids[1::2])


def test_job_with_a_key_stays_with_its_tenant() -> None:
    job = noop.using(unique=EXECUTED, tenant="acme").delay()

    assert control.change_queue([job.pk], tenant="zeta", queue="default") == []
    assert control.change_queue([job.pk], tenant="acme", queue="other") == [job.pk]


# while it runs


def test_one_of_a_key_runs_at_a_time() -> None:
    jobs = [noop.using(unique=Unique("while_executing")).delay() for _ in range(3)]
    run_commit_hooks("default")

    assert [job.refresh().state for job in jobs] == ["ready", "held", "held"]
    assert [ran.pk for ran in run_pending()] == [job.pk for job in jobs]


def test_later_jobs_are_rejected_when_one_has_passed() -> None:
    jobs = [noop.using(unique=Unique("while_executing_reject")).delay() for _ in range(3)]
    run_commit_hooks("default")
    assert [job.refresh().state for job in jobs] == ["ready", "cancelled", "cancelled"]
    late = noop.using(unique=Unique("while_executing_reject")).delay()
    run_commit_hooks("default")

    assert [job.refresh().state for job in (*jobs, late)] == ["ready", *["cancelled"] * 3]
    assert "was under way" in late.last_error["message"]
    assert [ran.pk for ran in run_pending()] == [jobs[0].pk]
    again = noop.using(unique=Unique("while_executing_reject")).delay()
    assert [ran.pk for ran in run_pending()] == [again.pk]


@pytest.mark.parametrize(("on_failure", "state"), [("continue", "ready"), ("halt", "held")])
def test_rejected_head_is_a_failure_to_its_session(on_failure: Any, state: str) -> None:
    reject = Unique("while_executing_reject")
    first = add.using(unique=reject).delay(1)
    run_commit_hooks("default")
    head = add.using(session=Serial("s", on_failure=on_failure), unique=reject).delay(1)
    after = add.using(session="s").delay(2)
    run_commit_hooks("default")
    Sweep().step("default")

    assert (first.refresh().state, head.refresh().state) == ("ready", "cancelled")
    assert after.refresh().state == state
    assert (Session.objects.get().halted_by == head.pk) is (on_failure == "halt")


def test_more_urgent_job_is_rejected_like_any_other() -> None:
    unique = Unique("while_executing_reject")
    first = noop.using(unique=unique, priority=300).delay()
    run_commit_hooks("default")
    urgent = noop.using(unique=unique, priority=1).delay()
    run_commit_hooks("default")

    assert (first.refresh().state, urgent.refresh().state) == ("ready", "cancelled")


def test_modes_of_one_key_keep_each_other_out() -> None:
    noop.using(unique=Unique("while_executing", key="k")).delay()
    run_commit_hooks("default")
    rejected = echo.using(unique=Unique("while_executing_reject", key="k")).delay(1)
    run_commit_hooks("default")

    assert rejected.refresh().state == "cancelled"


# where nothing is stored, and what users see


def test_eager_job_runs_each_time(settings: Any) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "EAGER": True}
    bound = echo.using(unique=Unique("until_executed", on_conflict="raise"))

    assert [bound.delay(5).result for _ in range(2)] == [5, 5]
    with pytest.raises(InvalidOption, match="unique key"):
        echo.using(unique=Unique("until_executed", key=lambda value: None)).delay(5)


def test_plain_job_sends_what_it_sent_before(monkeypatch: pytest.MonkeyPatch) -> None:
    noop.delay()
    sent: list[str] = []
    fetch = enqueue_queries.fetch_prepared
    monkeypatch.setattr(
        enqueue_queries, "fetch_prepared", lambda *call: sent.append(call[1]) or fetch(*call)
    )
    noop.delay()
    noop.enqueue_many([()] * 3)

    assert sent == ["insert_job", "insert_jobs"]
    assert Job.objects.filter(unique_key=None, unique_mode=None).count() == 5
