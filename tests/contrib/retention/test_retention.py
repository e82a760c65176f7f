"""What retention rules remove and keep, and how removed values are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone

from django_tenantqueue.contrib.retention import pruning
from django_tenantqueue.contrib.retention import rules as retention
from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.retention.operations import delete_rules, tune_rule
from django_tenantqueue.contrib.retention.pruning import Pruner
from django_tenantqueue.contrib.retention.rules import Rule, Rules
from django_tenantqueue.exceptions import InvalidOption, InvalidState, Permanent
from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, MonitorAddition
from django_tenantqueue.operations import control, history, maintain
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.operations.bulk_actions import ACTIONS
from django_tenantqueue.operations.history import dropped_whole
from django_tenantqueue.queries.lists import JobFilter
from django_tenantqueue.status.job_pages import find_jobs
from django_tenantqueue.testing import run_pending
from django_tenantqueue.web.views import describe_job
from tests.factories import make_job, make_jobs, make_queue, state_of
from tests.operations.monitors import start
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
NOW = timezone.now()
FAILED = [
    {
        "at": "2026-01-01T00:00:00+00:00",
        "attempt": 1,
        "class": "ValueError",
        "message": "secret",
        "traceback": "lines",
        "answer": {"status": 500, "message": "secret"},
    }
]


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.fixture(autouse=True)
def months() -> None:
    # psycopg commits a block that is the first of its transaction: the leaves would stay
    assert not RetentionRule.objects.exists()
    for days in range(0, 110, 10):
        history.make_leaf("default", ago(days).date().replace(day=1))


def ended(queue: Any = None, days: float = 10, state: str = "success", **columns: Any) -> int:
    (job_id,) = make_jobs(
        make_queue() if queue is None else queue,
        1,
        state=state,
        finished_at=ago(days),
        **{"args": {"args": ["name"]}, "result": {"a": 1}, **columns},
    )
    return job_id


def prune(**options: Any) -> Pruner:
    pruner = Pruner(**options)
    pruner.begin("default", NOW)
    while pruner.place is not None:
        pruner.step("default", NOW)
    return pruner


def left(*ids: int) -> list[int]:
    return sorted(Job.objects.filter(pk__in=ids).values_list("pk", flat=True))


def test_jobs_are_deleted_when_they_are_older_than_their_rule():
    make_retention_rule(keep_days=7)
    old, young = ended(days=8), ended(days=6)
    waiting = make_job()

    pruner = prune()

    assert left(old, young, waiting.pk) == [young, waiting.pk]
    assert pruner.removed["keep_days"] == 1


@pytest.mark.parametrize("tenant", ["acme", 'O\'Neill "%s" {x} *', "a/b\\c", "<b>", "客户"])
def test_only_one_tenant_is_pruned_when_the_rule_names_it(tenant: str):
    make_retention_rule(tenant=tenant, keep_days=5)
    own, other = ended(make_queue(tenant)), ended(make_queue(f"{tenant}x"))

    prune()

    assert left(own, other) == [other]


@pytest.mark.parametrize(
    ("tenants", "gone"),
    [
        ([""], [""]),
        ([None], ["", "acme", "other"]),
        (["acme"], ["acme"]),
        (["", "acme"], ["", "acme"]),
    ],
)
def test_rule_is_for_jobs_without_a_tenant_for_one_tenant_or_for_every_tenant(tenants, gone):
    for tenant in tenants:
        make_retention_rule(tenant=tenant, keep_days=5)
    jobs = {tenant: ended(make_queue(tenant)) for tenant in ("", "acme", "other")}

    prune()

    assert left(*jobs.values()) == sorted(jobs[t] for t in jobs if t not in gone)


def test_rule_of_no_tenant_comes_before_one_of_every_tenant():
    make_retention_rule(tenant=None, keep_days=5)
    make_retention_rule(tenant="", keep_days=50)
    with pytest.raises(ValidationError):
        make_retention_rule(keep_days=7)
    kept, gone = ended(make_queue("")), ended(make_queue("acme"))

    prune()

    assert left(kept, gone) == [kept]


def test_job_whose_queue_is_gone_has_rules_of_every_tenant_alone():
    rules = Rules([rule(1, tenant="", keep=1), rule(2, keep=9)], None, NOW)

    found = [rules.limits(tenant, "x", "error")[0] for tenant in ("", None)]

    assert [limit and limit.rule_id for limit in found] == [1, 2]


def rule(
    number: int, tenant: str | None = None, task: str = "", state: str = "", **days: int
) -> Rule:
    return Rule(number, tenant, task, state, (days.get("keep"), days.get("arguments"), None, None))


@pytest.mark.parametrize(
    ("name", "state", "tenant", "winner"),
    [
        ("x.y", "success", "other", 1),
        ("x.y", "error", "other", 2),
        ("app.tasks.mail", "error", "other", 4),
        ("app.tasks.send", "error", "other", 5),
        ("app.tasks.send", "error", "acme", 6),
        ("app.tasksXsend", "success", "other", 3),
        ("app.[a]?", "success", "other", 7),
        ("app.a!", "success", "other", 3),
    ],
)
def test_most_specific_rule_wins_when_several_fit(name, state, tenant, winner):
    rules = [
        rule(1, keep=1),
        rule(2, state="error", keep=1),
        rule(3, task="app.*", keep=1),
        rule(4, task="app.tasks.*", keep=1),
        rule(5, task="app.tasks.send", keep=1),
        rule(6, tenant="acme", keep=1),
        rule(7, task="app.[a]?", keep=1),
        rule(8, tenant="acme", task="app.tasks.send", state="error", arguments=1),
    ]

    limit = Rules(rules, None, NOW).limits(tenant, name, state)[0]

    assert limit is not None
    assert limit.rule_id == winner


def test_values_come_from_different_rules_when_the_specific_one_does_not_give_them():
    rules = Rules([rule(1, keep=30, arguments=3), rule(2, tenant="acme", keep=90)], None, NOW)

    keep, arguments, results, _ = rules.limits("acme", "x", "error")

    assert keep is not None
    assert arguments is not None
    assert (keep.rule_id, arguments.rule_id, results) == (2, 1, None)


def test_no_month_is_dropped_whole_when_a_rule_keeps_a_tenant_for_longer(settings):
    settings.TENANTQUEUE = {"HISTORY_KEEP_MONTHS": 1}
    old = ago(100).date().replace(day=1)
    assert old in [leaf.month for leaf in dropped_whole("default", NOW)]
    make_retention_rule(tenant="acme", keep_days=3650)
    kept, other = ended(make_queue("acme"), days=100), ended(days=100)

    assert dropped_whole("default", NOW) == []
    maintain.drop_history("default")
    prune()

    assert left(kept, other) == [kept]


def test_month_is_dropped_whole_when_every_rule_has_passed():
    make_retention_rule(keep_days=30)
    make_retention_rule(tenant="acme", keep_days=60)
    gone = ended(make_queue("acme"), days=100)
    month = ago(100).date().replace(day=1)

    assert history.leaf_name(month) in maintain.drop_history("default")

    assert left(gone) == []


def test_month_is_not_dropped_when_it_has_details_of_an_unfinished_monitor():
    make_retention_rule(keep_days=30)
    queue = make_queue()
    monitor = start([noop.call()], parallel=1, keep_open=True)
    MonitorAddition.objects.filter(monitor=monitor).update(details=4)
    details = [
        ended(queue, days=100, state=state, monitor_id=monitor.pk)
        for state in ("error", "success", "cancelled")
    ]
    other = ended(queue, days=100)
    before = monitor.progress()
    assert (before.failed, before.cancelled) == (1, 1)

    maintain.drop_history("default", NOW.date())
    prune()

    assert left(*details, other) == details
    assert monitor.progress() == before
    control.cancel([Job.objects.get(monitor_id=monitor.pk, task=noop.name, final=False).pk])
    monitor.close()
    run_pending()
    assert ago(100).date().replace(day=1) in [leaf.month for leaf in dropped_whole("default", NOW)]


def test_jobs_in_the_default_leaf_get_their_month_and_are_pruned():
    make_retention_rule(keep_days=300)
    make_retention_rule(tenant="acme", keep_days=3650)
    queue = make_queue("acme")
    month = ago(400).date().replace(day=1)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {history.leaf_name(month)}")
    kept, old = ended(queue, days=400), ended(days=400)
    infinite = ended(days=10)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_job_history SET finished_at = 'infinity' WHERE id = %s", [infinite]
        )
        cursor.execute("SELECT count(*) FROM tenantqueue_job_history_default")
        assert cursor.fetchone() == (3,)

    assert history.leaf_name(month) in maintain.make_history("default")
    prune()

    assert Job.objects.filter(pk__in=[kept, old]).values_list("pk", flat=True).get() == kept


def test_values_are_removed_when_they_are_older_than_their_days():
    make_retention_rule(arguments_days=3, results_days=3, errors_days=3, keep_days=60)
    behind = [{"on": "success", "task": "send", "args": {"args": ["eve"]}}]
    old = ended(days=4, state="error", errors=FAILED, follow_ups=behind)
    young = ended(days=2, state="error", errors=FAILED, follow_ups=behind)

    pruner = prune()

    thin, whole = Job.objects.get(pk=old), Job.objects.get(pk=young)
    assert thin.follow_ups == [{"on": "success", "task": "send"}]
    assert whole.follow_ups == behind
    assert thin.arguments_removed
    assert thin.last_error is not None
    assert (thin.last_error["class"], thin.last_error["traceback"]) == ("ValueError", "")
    assert "removed" in thin.last_error["message"]
    assert thin.last_error["answer"] == {"status": 500}
    assert (whole.args, whole.result, whole.errors) == ({"args": ["name"]}, {"a": 1}, FAILED)
    assert [pruner.removed[f"{n}_days"] for n in ("keep", "arguments", "results", "errors")] == [
        0,
        1,
        1,
        1,
    ]
    assert prune().removed.total() == 0  # each value is removed once


def test_arguments_stay_when_there_are_none_to_remove():
    make_retention_rule(arguments_days=3)
    old = ended(args={"args": []}, result=None)

    assert prune().removed.total() == 0
    assert not Job.objects.get(pk=old).arguments_removed


def test_mark_of_a_secret_stays_when_the_arguments_are_removed():
    make_retention_rule(arguments_days=3)
    old = ended(args={"args": ["x"], "secret": True})

    prune()

    assert Job.objects.get(pk=old).args == {"__tenantqueue__": "removed", "secret": True}


def test_keys_of_searchable_arguments_are_removed_with_the_arguments():
    make_retention_rule(arguments_days=3)
    old = ended(args={"args": [4711], "search": ["invoice=4711"]})
    assert find_jobs("default", JobFilter(argument="invoice=4711"), size=5).ids == (old,)

    prune()

    assert find_jobs("default", JobFilter(argument="invoice=4711"), size=5).ids == ()


def test_errors_of_another_shape_are_removed_when_raw_sql_has_stored_them():
    make_retention_rule(errors_days=3)
    odd, scalar = ended(errors={"x": 1}, state="error"), ended(errors=["x"], state="error")

    prune()

    assert Job.objects.get(pk=odd).errors is None
    assert Job.objects.get(pk=scalar).errors == [{"removed": True}]


def test_status_says_so_when_the_result_was_removed():
    make_retention_rule(results_days=3)
    job = Job.objects.get(pk=ended())
    prune()
    job = Job.objects.get(pk=job.pk)

    with pytest.raises(LookupError, match="removed by a retention rule"):
        job.result  # noqa: B018
    assert describe_job(job)["result_missing"] is True


def test_retry_is_refused_when_the_arguments_were_removed():
    make_retention_rule(arguments_days=3)
    job_id, other = ended(state="error", task=noop.name), ended(state="error", days=1)
    prune()
    job = Job.objects.get(pk=job_id)

    assert control.retry([job_id]) == []
    assert control.find_without_arguments([job_id, other]) == [job_id]
    with pytest.raises(InvalidState, match="were removed by a retention rule"):
        enqueue_again(job, (), {})
    done = ACTIONS["retry"].act("default", [job], {})
    assert done.left == {"arguments_removed": 1}
    assert state_of(job_id) == "error"


def test_run_ends_in_error_when_raw_sql_brings_a_job_without_arguments_back():
    job = make_job(args={"__tenantqueue__": "removed"}, task=noop.name)

    run_pending()

    assert job.refresh().last_error is not None
    assert "removed by a retention rule" in job.last_error["message"]
    assert job.state == "error"
    assert Permanent.__name__ in job.last_error["class"]


def test_jobs_of_a_monitor_stay_when_it_has_not_ended():
    make_retention_rule(keep_days=3)
    queue = make_queue()
    anchor = make_job(queue)
    monitor = ConcurrentJobMonitor.objects.create(
        name="m", parallel=1, anchor_id=anchor.pk, created_at=NOW
    )
    detail = ended(queue, monitor_id=monitor.pk)
    prune()
    assert left(detail) == [detail]

    run_pending()
    prune()

    assert left(detail) == []


def test_month_is_read_again_when_jobs_in_it_were_left(monkeypatch):
    monkeypatch.setattr(pruning, "PASS_SECONDS", 0.0)
    make_retention_rule(keep_days=3)
    make_retention_rule(tenant="other", keep_days=3650)  # no month is dropped whole
    queue = make_queue()
    anchor = make_job(queue)
    monitor = ConcurrentJobMonitor.objects.create(
        name="m", parallel=1, anchor_id=anchor.pk, created_at=NOW
    )
    detail = ended(queue, monitor_id=monitor.pk)
    pruner, later = Pruner(), NOW + timedelta(days=70)

    def one_pass() -> bool:
        begun = pruner.begin("default", later)
        while pruner.place is not None:
            pruner.step("default", later)
        return begun

    assert one_pass()
    run_pending()
    assert one_pass()

    assert left(detail) == []
    assert one_pass()  # the month of the anchor
    assert not Job.objects.exists()


def test_job_stays_when_it_has_come_back_and_ended_again_since_it_was_read(monkeypatch):
    make_retention_rule(keep_days=3)
    job_id = ended(state="error")
    read = Pruner._read_jobs

    def slow(*args: Any, **kwargs: Any) -> Any:
        jobs = read(*args, **kwargs)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE tenantqueue_job_history SET finished_at = %s WHERE id = %s",
                [ago(1), job_id],
            )
        return jobs

    monkeypatch.setattr(Pruner, "_read_jobs", slow)
    prune()

    assert left(job_id) == [job_id]


def test_next_step_follows_the_rules_when_they_change_in_the_middle_of_a_pass(monkeypatch):
    monkeypatch.setattr(pruning, "PAGES", 1)
    row = make_retention_rule(keep_days=3)
    ids = make_jobs(make_queue(), 100, state="success", finished_at=ago(10))
    pruner = Pruner()
    pruner.begin("default", NOW)
    while not (first := pruner.step("default", NOW)):
        pass

    tune_rule(row.pk, keep_days=3650)
    while pruner.place is not None:
        pruner.step("default", NOW)

    assert len(left(*ids)) == 100 - first > 0


def test_pass_is_due_when_rules_change_or_time_has_passed(monkeypatch):
    pruner = Pruner()
    assert not pruner.begin("default", NOW)
    row = make_retention_rule(keep_days=10)
    ended(days=10.5)
    assert pruner.begin("default", NOW)
    while pruner.place is not None:
        pruner.step("default", NOW)
    assert pruner.removed["keep_days"] == 1
    assert pruner.rest(1) == inf
    assert not pruner.begin("default", NOW)

    tune_rule(row.pk, keep_days=9)
    assert pruner.begin("default", NOW)
    while pruner.place is not None:
        pruner.step("default", NOW)
    assert not pruner.begin("default", NOW + timedelta(hours=7))

    monkeypatch.setattr(pruning, "PASS_SECONDS", 0.0)
    assert pruner.begin("default", NOW + timedelta(hours=7))


def test_dry_run_tells_and_changes_nothing():
    row = make_retention_rule(keep_days=9, arguments_days=1)
    old, young = ended(), ended(days=3)

    pruner = prune(dry_run=True)

    told = {key: amount.rows for key, amount in pruner.told.items()}
    assert told == {(row.pk, "keep_days"): 1, (row.pk, "arguments_days"): 1}
    assert all(amount.bytes > 20 for amount in pruner.told.values())
    assert left(old, young) == [old, young]
    assert not Job.objects.get(pk=young).arguments_removed


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"keep_days": 0},
        {"keep_days": -1},
        {"keep_days": 36_501},
        {"keep_days": 1, "state": "running"},
        {"keep_days": 1, "task": " x"},
        {"keep_days": 1, "tenant": "x" * 201},
    ],
)
def test_rule_is_refused_when_it_says_nothing_that_can_be_done(columns: Any):
    with pytest.raises(ValidationError):
        make_retention_rule(**columns)


def test_second_rule_for_the_same_jobs_is_refused():
    make_retention_rule(tenant="acme", keep_days=1)

    with pytest.raises(ValidationError):
        make_retention_rule(tenant="acme", keep_days=2)
    with pytest.raises(InvalidOption, match="cannot be tuned"):
        make_retention_rule(forever=1)


def test_changes_of_rules_are_recorded():
    row = make_retention_rule(tenant="acme", keep_days=1)
    tune_rule(row.pk, keep_days=2)
    delete_rules([row.pk])

    found = Change.objects.order_by("pk").values_list("action", "object_kind", "tenant")
    assert list(found) == [(a, "retention", "acme") for a in ("add", "tune", "delete")]
    assert not RetentionRule.objects.exists()


def test_setting_alone_keeps_whole_months():
    now = datetime(2026, 3, 5, tzinfo=UTC)

    assert retention.oldest_kept(12, now) == datetime(2025, 3, 1, tzinfo=UTC)
    assert retention.oldest_kept(None, now) is None


def test_queues_of_other_tenants_are_not_read_when_every_rule_names_a_tenant(monkeypatch):
    make_retention_rule(tenant="acme", keep_days=3)
    own, other = ended(make_queue("acme")), ended(make_queue("other"))
    found: list[int] = []
    read = Pruner._read_jobs

    def noted(*args: Any, **kwargs: Any) -> Any:
        jobs = read(*args, **kwargs)
        found.extend(job.id for job in jobs)
        return jobs

    monkeypatch.setattr(Pruner, "_read_jobs", noted)
    prune()
    assert found == [own]

    make_retention_rule(state="error", keep_days=3)
    prune()
    assert found == [own, other]


def test_all_queues_are_read_when_those_of_the_rules_are_many(monkeypatch):
    monkeypatch.setattr(pruning, "VISITED", 1)
    make_retention_rule(tenant="acme", keep_days=3)
    queues = [make_queue("acme", name) for name in ("a", "b")]
    ids = [ended(queue) for queue in (*queues, make_queue("other"))]

    prune()

    assert left(*ids) == ids[2:]


def test_rule_that_is_added_in_the_middle_of_a_pass_is_followed_for_all_queues(monkeypatch):
    monkeypatch.setattr(pruning, "PAGES", 1)
    make_retention_rule(tenant="acme", keep_days=3)
    ended(make_queue("acme"))
    ids = make_jobs(make_queue("other"), 100, state="success", finished_at=ago(10))
    pruner = Pruner()
    pruner.begin("default", NOW)
    pruner.step("default", NOW)

    make_retention_rule(keep_days=3)
    while pruner.place is not None:
        pruner.step("default", NOW)

    assert len(left(*ids)) < 100


def test_pass_is_not_begun_for_a_tenant_without_queues():
    make_retention_rule(tenant="acme", keep_days=3)
    ended(make_queue("other"))

    assert not Pruner().begin("default", NOW)
