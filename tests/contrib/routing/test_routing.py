"""Which queue a new job goes to: its call's, a routing's, or its task's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.test import override_settings

from django_tenantqueue import ConcurrentJobMonitor, delayed, task
from django_tenantqueue.contrib.routing import services as routing
from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.routing.routes import Routes
from django_tenantqueue.contrib.routing.services import delete_routings, list_routings, tune_routing
from django_tenantqueue.exceptions import InvalidOption, QueueRetired, UnknownQueue
from django_tenantqueue.models import Job
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.text import matches
from tests.factories import made_changes, make_queue
from tests.testapp.models import Report
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db


@task(name="tests.routed", queue="declared")
def routed() -> None:
    """Do nothing, in a queue of its own."""


def route(pattern: str, queue: str, tenant: str | None = None) -> Routing:
    """Add a routing without a look at its queue."""
    return Routing.objects.create(pattern=pattern, queue=queue, tenant=tenant)


def queue_of(made_by: Any = routed, tenant: str = "acme", **options: Any) -> str:
    return str(made_by.using(tenant=tenant, **options).delay().queue.name)


@pytest.mark.parametrize(
    ("pattern", "queue"), [("tests.other", "declared"), ("tests.routed", "heavy")]
)
def test_routing_wins_over_the_queue_of_the_task(pattern: str, queue: str) -> None:
    route(pattern, "heavy")

    assert queue_of() == queue
    assert queue_of(noop) == "default"


@pytest.mark.parametrize("queue", ["mine", "declared"])
def test_queue_of_the_call_wins_over_a_routing(queue: str) -> None:
    route("*", "heavy")

    assert queue_of(queue=queue) == queue
    assert queue_of(queue=None) == "heavy"


@pytest.mark.parametrize(
    ("routings", "queue"),
    [
        ([("*", "all"), ("tests.*", "some")], "some"),
        ([("tests.*", "some"), ("tests.rout*", "longer")], "longer"),
        ([("tests.rout*ed*", "longer"), ("tests.routed", "exact")], "exact"),
        ([("tests.routed", "exact"), ("*", "own", "acme")], "own"),
        ([("*", "own", "acme"), ("tests.*", "own-some", "acme")], "own-some"),
        ([("tests.routed", "other", "globex"), ("*", "all")], "all"),
        ([("tests.route", "none"), ("routed", "none"), ("TESTS.*", "none")], "declared"),
        ([("tests.[r]outed", "none"), ("tests?routed", "none")], "declared"),
    ],
)
def test_most_specific_routing_decides(routings: list[Any], queue: str) -> None:
    for one in routings:
        route(*one)

    assert queue_of() == queue


def test_pattern_fits_whole_names_and_only_the_star_is_special() -> None:
    assert matches("a.b", "a.*")
    assert matches("a[1]?", "a[*")
    assert matches("a", "a*")
    assert not matches("ab", "?b")
    assert not matches("xa.b", "a.*")


def test_all_ways_to_enqueue_by_name_are_routed() -> None:
    route("tests.routed", "heavy")
    queue = make_queue("acme", "session")

    many = routed.using(tenant="acme").enqueue_many([(), ()])
    gated = routed.using(tenant="acme", session="s").delay()
    detail = ConcurrentJobMonitor.objects.start(
        "m", [routed.call()], tenant="acme", parallel=1, on_end=routed.call()
    )
    named = ConcurrentJobMonitor.objects.start(
        "n", [routed.call()], tenant="acme", parallel=1, queue=queue.name
    )

    assert queue_names(many) == ["heavy", "heavy"]
    assert gated.queue.name == "heavy"
    assert queue_names(monitor_jobs(detail)) == ["heavy", "heavy"]
    assert queue_names(monitor_jobs(named)) == ["session", "session"]


def monitor_jobs(monitor: ConcurrentJobMonitor) -> list[int]:
    details = Job.objects.filter(monitor_id=monitor.pk).values_list("pk", flat=True)
    return sorted({*details, monitor.anchor_id})


def queue_names(ids: list[int]) -> list[str]:
    jobs = Job.objects.filter(pk__in=ids).select_related("queue").order_by("pk")
    return [job.queue.name for job in jobs]


def test_call_of_a_method_is_routed_by_its_name() -> None:
    report = Report.objects.create(title="r")
    plain = report.delay(tenant="acme").execute("pdf")
    route(plain.task, "methods")

    assert report.delay(tenant="acme").execute("pdf").queue.name == "methods"
    assert delayed(report, tenant="acme", queue="mine").execute("pdf").queue.name == "mine"


def test_job_that_is_enqueued_again_keeps_its_queue() -> None:
    job = routed.using(tenant="acme").delay()
    route("*", "heavy")

    assert enqueue_again(Job.objects.get(pk=job.pk), (), {}).queue.name == "declared"


def test_routing_is_set_changed_listed_and_removed() -> None:
    make_queue("acme", "heavy")
    make_queue("acme", "heavier")

    first = make_routing("tests.*", "heavy", tenant="acme")
    assert queue_of() == "heavy"
    second = make_routing("tests.*", "heavier", tenant="acme")

    assert first.pk == second.pk
    assert queue_of() == "heavier"
    assert [row.queue for row in list_routings("acme")] == ["heavier"]
    assert list_routings("") == list_routings(None) == []
    assert delete_routings(second) == [second.pk]
    assert delete_routings(second) == []
    assert queue_of() == "declared"
    assert made_changes() == [
        ("add", {}, {"pattern": "tests.*", "queue": "heavy"}),
        ("tune", {"queue": "heavy"}, {"queue": "heavier"}),
        ("delete", {"pattern": "tests.*", "queue": "heavier"}, {}),
    ]


def test_routing_to_a_missing_queue_is_refused() -> None:
    make_queue("globex", "heavy")

    with pytest.raises(UnknownQueue, match=r"tenant 'acme' has no queue 'heavy', so no job can"):
        make_routing("tests.*", "heavy", tenant="acme")
    with pytest.raises(UnknownQueue, match=r"there is no queue 'hevy'.*Did you mean 'heavy'"):
        make_routing("tests.*", "hevy")
    assert not Routing.objects.exists()
    row = make_routing("tests.*", "heavy")
    with pytest.raises(UnknownQueue):
        tune_routing(row.pk, queue="hevy")
    assert Routing.objects.get().queue == "heavy"


def test_routing_to_a_retired_queue_is_refused() -> None:
    make_queue("acme", "heavy", retired=True)

    with pytest.raises(QueueRetired, match="is retired and takes no new jobs: reopen it"):
        make_routing("tests.*", "heavy", tenant="acme")
    with pytest.raises(UnknownQueue):
        make_routing("tests.*", "heavy")


def test_routing_is_for_jobs_without_a_tenant_for_one_tenant_or_for_every_tenant() -> None:
    for tenant, queue in (("", "tenantless"), ("acme", "own"), ("globex", "shared")):
        make_queue(tenant, queue)
    make_routing("tests.*", "tenantless", tenant="")
    make_routing("tests.*", "own", tenant="acme")

    assert [queue_of(tenant=t) for t in ("", "acme", "globex")] == ["tenantless", "own", "declared"]
    make_routing("tests.*", "shared", tenant=None)
    assert [queue_of(tenant=t) for t in ("", "acme", "globex")] == ["tenantless", "own", "shared"]
    assert [row.queue for row in (*list_routings(""), *list_routings(None))] == [
        "tenantless",
        "shared",
    ]
    make_routing("tests.*", "default")  # of every tenant: the same row
    assert [queue_of(tenant=t) for t in ("", "globex")] == ["tenantless", "default"]
    assert Routing.objects.count() == 3


def test_routing_of_jobs_without_a_tenant_needs_a_queue_of_theirs() -> None:
    make_queue("acme", "heavy")

    with pytest.raises(UnknownQueue, match="tenant '' has no queue 'heavy'"):
        make_routing("tests.*", "heavy", tenant="")


@override_settings(TENANTQUEUE={"DECLARED_QUEUES": ["region-*"]})
@pytest.mark.parametrize("queue", ["default", "declared", "region-eu"])
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_queue_that_is_declared_may_be_made_at_its_first_use(queue: str, tenant: str) -> None:
    make_routing("tests.*", queue, tenant=tenant)

    assert queue_of() == queue


@override_settings(TENANTQUEUE={"STRICT_QUEUES": True})
def test_routing_of_every_tenant_is_refused_when_strict_settings_would_not_make_its_queue() -> None:
    make_queue("acme", "heavy")

    with pytest.raises(UnknownQueue):
        make_routing("tests.*", "heavy")
    make_routing("tests.*", "heavy", tenant="acme")
    assert queue_of() == "heavy"


@pytest.mark.parametrize(
    ("pattern", "tenant"), [("", ""), (" x", ""), ("x" * 501, ""), ("x", "t" * 201), ("\0", "")]
)
def test_bad_names_are_refused(pattern: str, tenant: str) -> None:
    with pytest.raises(ValidationError):
        make_routing(pattern, "default", tenant=tenant)


def test_only_the_queue_is_tuned() -> None:
    row = route("x", "default")

    with pytest.raises(InvalidOption):
        tune_routing(row.pk, pattern="y")
    tune_routing(row.pk)
    with pytest.raises(Routing.DoesNotExist):
        tune_routing(0, queue="default")


@pytest.mark.parametrize(
    "values",
    [{"pattern": ""}, {"queue": ""}, {"pattern": "taken"}, {"pattern": "no", "tenant": ""}],
)
def test_database_refuses_rows_without_names_and_two_of_a_pattern(values: dict[str, str]) -> None:
    route("taken", "default")
    route("no", "default", tenant="")

    with pytest.raises(IntegrityError), transaction.atomic():
        Routing.objects.create(**{"pattern": "x", "queue": "default", **values})


@pytest.mark.django_db(transaction=True)
def test_edit_is_live_in_other_processes_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("django_tenantqueue.contrib.routing.routes.monotonic", lambda: now[0])
    routing.forget_routes()
    assert queue_of() == "declared"
    route("*", "heavy")  # as another process does

    now[0] += 0.9
    assert queue_of() == "declared"
    now[0] += 0.2
    assert queue_of() == "heavy"
    routing.forget_routes()


def test_test_case_reads_its_own_routings_whatever_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remembered = {"default": (math.inf, Routes([]))}
    monkeypatch.setattr("django_tenantqueue.contrib.routing.routes._known", remembered)
    route("*", "heavy")

    assert queue_of() == "heavy"


@pytest.mark.django_db(transaction=True)
def test_routings_are_not_read_again_for_each_job() -> None:
    routing.forget_routes()
    queue_of()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_routing RENAME TO tenantqueue_gone")
    try:
        assert queue_of() == "declared"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tenantqueue_gone RENAME TO tenantqueue_routing")
