"""Rules open, repeat and resolve alerts, and each is told once."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.contrib.alerts import check, fleet
from django_tenantqueue.contrib.alerts.check import check_rules, prune_alerts, seconds_to_next_check
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.messages import read_message
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.alerts.services import tune_alert_rule
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import Job, Session, TenantQueue
from django_tenantqueue.worker.connection import connect
from tests.factories import make_figure, make_job, make_jobs, make_queue, make_worker
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def rule_on(kind: str, **columns: Any) -> AlertRule:
    return make_alert_rule(f"rule-{AlertRule.objects.count()}", kind, **{"log": True, **columns})


def look(now: datetime | None = None) -> None:
    AlertRule.objects.update(next_at=now or timezone.now())
    check_rules("default", now)


def told() -> list[tuple[list[tuple[str, str]], int, int]]:
    """Return what each message tells: state and object, and how many more and left out."""
    jobs = Job.objects.filter(task="django_tenantqueue.alerts.deliver").order_by("pk")
    calls = [job.args["kwargs"] for job in jobs]
    messages = [read_message(AlertRule.objects.get(pk=c["rule_id"]), c["kept"]) for c in calls]
    return [
        ([(a["state"], a["object"]) for a in m["alerts"]], m["more"], m["left_out"])
        for m in messages
    ]


def objects_of(rule: AlertRule) -> list[str]:
    found = Alert.objects.filter(rule=rule, resolved_at__isnull=True)
    return sorted(found.values_list("label", flat=True))


def wait_for_jobs(queue: TenantQueue, count: int = 6, **columns: Any) -> list[int]:
    moment = timezone.now() - 10 * MINUTE
    return make_jobs(queue, count, created_at=moment, run_at=moment, **columns)


def test_queue_opens_an_alert_when_more_jobs_wait_than_the_rule_says() -> None:
    rule = rule_on("queue_backlog", threshold=5)
    queue = make_queue("acme", "mail")
    make_jobs(make_queue("other"), 5)
    ids = make_jobs(queue, 6)

    look()
    look()
    assert objects_of(rule) == ["acme / mail"]
    assert told() == [([("open", "acme / mail")], 0, 0)]

    Job.objects.filter(pk__in=ids)._raw_delete("default")
    look()
    assert objects_of(rule) == []
    assert told()[1:] == [([("resolved", "acme / mail")], 0, 0)]


def test_job_that_waits_for_long_opens_an_alert_of_its_queue() -> None:
    rule = rule_on("queue_late", threshold=300)
    make_jobs(make_queue("acme", "new"), 1)
    wait_for_jobs(make_queue("acme", "old"), 1)

    look()

    assert objects_of(rule) == ["acme / old"]
    assert Alert.objects.get().tenant == "acme"


def test_queue_that_no_worker_takes_opens_an_alert() -> None:
    rule = rule_on("no_worker_takes")
    make_worker(exclude_queues=["mail"])
    for name in ("mail", "default"):
        wait_for_jobs(make_queue("acme", name), 1)

    look()

    assert objects_of(rule) == ["acme / mail"]


@pytest.mark.parametrize("columns", [{}, {"tenant": "acme"}, {"task": "a.task"}])
def test_queue_of_an_executor_opens_an_alert_when_no_dispatcher_takes_it(
    columns: dict[str, str],
) -> None:
    rule = rule_on("no_worker_takes", **columns)
    make_worker()
    wait_for_jobs(make_queue("acme", "celery", executor="celery"), 1, task="a.task")
    wait_for_jobs(make_queue("acme", "mail"), 1, task="a.task")

    look()

    assert objects_of(rule) == ["acme / celery" + (": a.task" if "task" in columns else "")]


@pytest.mark.parametrize(
    ("kind", "threshold"), [("queue_backlog", 5), ("queue_late", 300), ("no_worker_takes", 60)]
)
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, ["acme / mail", "other / mail"]),
        ({"tenant": "acme"}, ["acme / mail"]),
        ({"tenant": "other", "queue": "mail"}, ["other / mail"]),
        ({"queue": "default"}, []),
    ],
)
def test_rule_about_waiting_jobs_that_names_a_task_finds_the_jobs_of_this_task(
    kind: str, threshold: int, columns: dict[str, str], expected: list[str]
) -> None:
    rule = rule_on(kind, threshold=threshold, task="a.task", **columns)
    moment = timezone.now() - 10 * MINUTE
    old = {"created_at": moment, "run_at": moment}
    for tenant in ("acme", "other"):
        mail, default = make_queue(tenant, "mail"), make_queue(tenant, "default")
        make_jobs(mail, 3, task="b.task", **old)
        make_jobs(mail, 6, task="a.task", **old)
        make_jobs(default, 6, task="b.task", **old)
        make_jobs(default, 1, task="a.task", run_at=timezone.now())

    look()

    assert objects_of(rule) == [f"{found}: a.task" for found in expected]
    tune_alert_rule(rule.pk, task="b.task", threshold=2)
    look()
    assert objects_of(rule)
    assert all(label.endswith(": b.task") for label in objects_of(rule))


def test_jobs_that_a_task_has_set_aside_wait_too() -> None:
    rule = rule_on("queue_backlog", threshold=5, task="a.task")
    moment = timezone.now() - 10 * MINUTE
    queue = make_queue("acme", "mail")
    make_jobs(queue, 2, task="a.task")
    make_jobs(queue, 4, task="a.task", state="held", held_by="task", created_at=moment)
    make_jobs(queue, 9, task="b.task", state="held", held_by="task")
    make_jobs(make_queue("other", "mail"), 6, task="a.task", state="held", held_by="task")

    look()

    assert objects_of(rule) == ["acme / mail: a.task", "other / mail: a.task"]


def test_queue_with_many_jobs_is_counted_on_where_others_have_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "COUNTED_JOBS", 25)
    rule = rule_on("queue_backlog", threshold=6, task="a.task")
    for number in range(9):
        make_jobs(make_queue("acme", f"q{number}"), 1, task="a.task")
    queue = make_queue("acme", "long")
    make_jobs(queue, 4, task="b.task")
    make_jobs(queue, 7, task="a.task")

    look()

    assert objects_of(rule) == ["acme / long: a.task"]


def test_rules_of_several_tasks_share_their_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    read = fleet.list_ready_tasks
    monkeypatch.setattr(fleet, "list_ready_tasks", lambda *a, **k: reads.append(a) or read(*a, **k))
    for number in range(5):
        rule_on("queue_backlog", threshold=2, task=f"task-{number}")
    make_jobs(make_queue("acme"), 3, task="task-3")

    look()

    assert len(reads) == 1
    assert Alert.objects.get().label == "acme / default: task-3"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, [noop.name]),
        ({"tenant": "acme", "task": noop.name}, [noop.name]),
        ({"tenant": "acme", "queue": "other"}, []),
        ({"tenant": "other"}, []),
        ({"task": "another"}, []),
        ({"threshold": 90}, []),
    ],
)
@pytest.mark.parametrize("kind", ["task_failing", "job_failed"])
def test_failures_of_the_range_count_in_the_scope_of_the_rule(
    kind: str, columns: dict[str, Any], expected: Sequence[str]
) -> None:
    rule = rule_on(kind, range_minutes=10, **columns)
    queue, other = make_queue("acme"), make_queue("other")
    for place in (queue, None):
        make_figure(place, failed=20, succeeded=5, error="")
        make_figure(place, failed=20, error="ValueError", last_job_id=7)
        old = timezone.now().replace(second=0, microsecond=0) - 30 * MINUTE
        make_figure(place, failed=500, task="old", at=old)
        make_figure(place, failed=500, task="old", at=old, error="ValueError")
    make_figure(other, succeeded=100)

    look()

    found = objects_of(rule)
    assert [label.removesuffix(": ValueError") for label in found] == expected


def test_failed_deliveries_of_alerts_open_none() -> None:
    rule_on("job_failed")
    for error in ("", "DeliveryFailed"):
        make_figure(failed=20, error=error, task="django_tenantqueue.alerts.deliver")

    look()

    assert not Alert.objects.exists()


@pytest.mark.parametrize("kind", ["queue_backlog", "queue_late", "no_worker_takes"])
@pytest.mark.parametrize(
    ("tenant", "found"), [("", [""]), ("acme", ["acme"]), (None, ["", "acme", "other"])]
)
@pytest.mark.parametrize("task", ["", "a.task"])
def test_rule_is_about_jobs_without_a_tenant_one_tenant_or_every_tenant(
    kind: str, tenant: str | None, found: list[str], task: str
) -> None:
    rule_on(kind, threshold=5, tenant=tenant, task=task)
    moment = timezone.now() - 10 * MINUTE
    for one in ("", "acme", "other"):
        make_jobs(make_queue(one), 6, task="a.task", created_at=moment, run_at=moment)

    look()

    assert sorted(Alert.objects.values_list("tenant", flat=True)) == found
    (delivery,) = Job.objects.filter(task="django_tenantqueue.alerts.deliver")
    assert delivery.queue.tenant == (tenant or "")


@pytest.mark.parametrize("kind", ["task_failing", "job_failed"])
@pytest.mark.parametrize("tenant", ["", "acme", None])
def test_alert_about_a_task_is_of_the_tenant_of_its_rule(kind: str, tenant: str | None) -> None:
    rule_on(kind, tenant=tenant, threshold=1)
    for one in ("acme", ""):
        for place in (make_queue(one), None):
            make_figure(place, failed=20, task=f"{one}.task")
            make_figure(place, failed=20, error="ValueError", task=f"{one}.task")

    look()

    names = {alert.key.split()[0]: alert.tenant for alert in Alert.objects.all()}
    assert names == {f"{one}.task": tenant for one in ("acme", "") if tenant in (None, one)}


@pytest.mark.parametrize("kind", ["session_busy", "user_full", "exclusive_held", "task_full"])
def test_rule_of_a_tenant_sees_only_what_gates_hold_of_it(kind: str) -> None:
    gate = {"session_busy": "session", "user_full": "limit_user", "exclusive_held": "exclusive"}
    moment = timezone.now() - HOUR
    for tenant in ("zebra", "acme"):
        key = gate_key(tenant, f"{tenant}-key")
        keys = dict.fromkeys(("session_key", "limit_user", "exclusive_key"), key)
        held = {"state": "held", "held_by": gate.get(kind, "task"), "run_at": moment}
        make_job(make_queue(tenant), created_at=moment, task=f"{tenant}.task", **held, **keys)
    rule = rule_on(kind, tenant="acme")

    look()

    assert [str(label).split(" (")[0] for label in objects_of(rule)] == ["acme/default"]


def test_halted_session_opens_an_alert_of_its_tenant() -> None:
    rule = rule_on("session_halted", tenant="acme")
    for tenant in ("acme", "other"):
        key = f"{tenant}/s"
        Session.objects.create(
            kind="serial", tenant=tenant, key="s", gate_key=key, halted_at=timezone.now()
        )
        make_job(make_queue(tenant), state="held", held_by="session", session_key=key)

    look()

    assert objects_of(rule) == ["acme / s"]


def test_open_alert_is_told_again_when_the_rule_says_so() -> None:
    rule_on("queue_late", repeat_minutes=30)
    wait_for_jobs(make_queue("acme"))
    now = timezone.now()

    for minutes in (0, 10, 29, 31, 40):
        look(now + minutes * MINUTE)

    states = [alerts[0][0] for alerts, _, _ in told()]
    assert states == ["open", "still open"]


def test_what_opens_in_quiet_hours_is_told_after_them() -> None:
    rule = rule_on(
        "queue_late",
        quiet_from=time(22),
        quiet_until=time(6),
        time_zone="Asia/Tokyo",
        repeat_minutes=None,
    )
    first, second = make_queue("acme", "first"), make_queue("acme", "second")
    night = datetime(2026, 5, 1, 14, tzinfo=UTC)  # 23 o'clock there
    ids = wait_for_jobs(first)
    look(night)
    Job.objects.filter(pk__in=ids)._raw_delete("default")
    wait_for_jobs(second)
    look(night + HOUR)
    assert objects_of(rule) == ["acme / second"]
    assert told() == []

    look(night + 7 * HOUR)

    assert told() == [([("resolved", "acme / first"), ("open", "acme / second")], 0, 0)]


def test_limit_of_messages_leaves_out_and_says_how_many() -> None:
    rule_on("queue_late", max_per_hour=1, notify_resolved=False)
    now = timezone.now()
    kept = make_queue("acme", "kept")
    wait_for_jobs(kept)
    look(now)
    for minute in range(2, 8, 2):
        ids = wait_for_jobs(make_queue("acme", f"short-{minute}"))
        look(now + minute * MINUTE)
        Job.objects.filter(pk__in=ids)._raw_delete("default")
        look(now + (minute + 1) * MINUTE)
    wait_for_jobs(make_queue("acme", "late"))
    look(now + 10 * MINUTE)
    assert told() == [([("open", "acme / kept")], 0, 0)]

    look(now + HOUR)

    assert told()[1:] == [([("still open", "acme / kept"), ("open", "acme / late")], 0, 3)]


def test_message_counts_what_it_does_not_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LISTED", 2)
    rule_on("queue_late")
    for number in range(5):
        wait_for_jobs(make_queue("acme", f"q{number}"))

    look()
    look()

    assert [(len(alerts), more) for alerts, more, _ in told()] == [(2, 3)]


def test_open_alerts_of_a_rule_are_bounded_and_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MOST_OPEN", 2)
    rule = rule_on("queue_late")
    for number in range(4):
        wait_for_jobs(make_queue("acme", f"q{number}"))

    look()
    opened = objects_of(rule)
    look()

    assert len(opened) == 2
    assert objects_of(rule) == opened
    assert not Alert.objects.filter(resolved_at__isnull=False).exists()


@pytest.mark.django_db(transaction=True)
def test_second_leader_leaves_rules_that_the_first_one_has() -> None:
    rule = rule_on("queue_late")
    wait_for_jobs(make_queue("acme"))
    other = connect("default", "test")
    with other.transaction():
        other.execute("SELECT FROM tenantqueue_alertrule FOR NO KEY UPDATE")
        assert check_rules("default") == 0
    other.close()

    assert check_rules("default") == 1
    assert check_rules("default") == 0
    assert objects_of(rule) == ["acme / default"]
    assert len(told()) == 1


@pytest.mark.django_db(transaction=True)
def test_leaders_that_check_at_once_tell_each_alert_once() -> None:
    for _ in range(5):
        rule_on("queue_late")
    wait_for_jobs(make_queue("acme"))
    barrier = Barrier(4)

    def lead() -> int:
        barrier.wait()
        try:
            return check_rules("default")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        checked = [future.result() for future in [pool.submit(lead) for _ in range(4)]]

    assert sum(checked) == 5
    assert len(told()) == Alert.objects.count() == 5


def test_object_has_one_open_alert_of_a_rule() -> None:
    rule = rule_on("queue_late")
    wait_for_jobs(make_queue("acme"))
    look()
    alert = Alert.objects.get()

    alert.pk = None
    with pytest.raises(IntegrityError, match="tenantqueue_alert_open"), transaction.atomic():
        alert.save(force_insert=True)
    assert rule.pk == alert.rule_id


def test_alert_and_its_message_are_in_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = rule_on("queue_late")
    wait_for_jobs(make_queue("acme"))

    def fail(*args: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(check, "enqueue_message", fail)
        look()
    rule.refresh_from_db()
    assert (rule.last_error, rule.hour_at) == ("OSError: the disk is full", None)
    assert not Alert.objects.exists()

    look()
    rule.refresh_from_db()
    assert rule.last_error == ""
    assert len(told()) == Alert.objects.count() == 1


def test_rule_that_fails_does_not_stop_the_others() -> None:
    broken, rule = rule_on("queue_late"), rule_on("queue_late")
    AlertRule.objects.filter(pk=broken.pk).update(
        quiet_from=time(1), quiet_until=time(2), time_zone="Nowhere"
    )
    wait_for_jobs(make_queue("acme"))

    look()

    assert (len(objects_of(broken)), len(objects_of(rule))) == (0, 1)


def test_rule_is_due_after_the_interval() -> None:
    assert seconds_to_next_check("default") is None
    rule_on("queue_late")
    assert (seconds_to_next_check("default") or 0) <= 0

    with override_settings(TENANTQUEUE={"ALERTS": {"INTERVAL": 100}}):
        check_rules("default")

    assert 90 < (seconds_to_next_check("default") or 0) <= 100


def test_rules_share_their_reads() -> None:
    for _ in range(10):
        rule_on("queue_late", threshold=5)
    make_jobs(make_queue("acme"), 3)

    with CaptureQueriesContext(connection) as queries:
        look()

    walks = [q for q in queries.captured_queries if "tenantqueue_job_hot" in q["sql"]]
    assert len(walks) <= 1
    assert len(queries) < 60


def test_disabled_rule_resolves_its_alerts_and_tells_nothing() -> None:
    rule = rule_on("queue_late")
    wait_for_jobs(make_queue("acme"))
    look()

    tune_alert_rule(rule.pk, enabled=False)
    look()

    assert objects_of(rule) == []
    assert len(told()) == 1


def test_rule_of_another_kind_begins_anew() -> None:
    rule = rule_on("session_halted")
    now = timezone.now()
    Alert.objects.create(rule=rule, key="acme s", opened_at=now, seen_at=now, pending=False)
    wait_for_jobs(make_queue("acme"))

    tune_alert_rule(rule.pk, kind="queue_late")
    look()

    assert objects_of(rule) == ["acme / default"]
    assert told() == [([("open", "acme / default")], 0, 0)]


def test_fleet_without_rules_sends_one_statement() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert seconds_to_next_check("default") is None

    assert len(queries) == 1


def test_old_alerts_are_pruned_but_open_ones_stay() -> None:
    rule = rule_on("queue_late")
    moment = timezone.now() - timedelta(days=500)
    ends = (moment, timezone.now(), None)
    for number, end in enumerate(ends):
        Alert.objects.create(
            rule=rule, key=str(number), opened_at=moment, seen_at=moment, resolved_at=end
        )

    with override_settings(TENANTQUEUE={"CHANGES_KEEP_DAYS": None}):
        assert prune_alerts("default") == 0
    assert prune_alerts("default") == 1
    assert set(Alert.objects.values_list("resolved_at", flat=True)) == set(ends[1:])


def test_rule_of_an_unknown_kind_is_refused_with_the_kinds_that_there_are() -> None:
    with pytest.raises(InvalidOption, match="kind='slow': it must be one of unknown"):
        make_alert_rule("slow", "slow")
    rule = make_alert_rule("slow", "queue_late", log=True)
    with pytest.raises(InvalidOption, match="kind='fast'"):
        tune_alert_rule(rule.pk, kind="fast")
