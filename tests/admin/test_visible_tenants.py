"""A user who sees one tenant finds nothing of another one, on no page and by no address."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

import pytest
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue import bulk
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.models import ApiToken
from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.control import limit_user
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption
from django_tenantqueue.models import (
    Change,
    ConcurrentJobMonitor,
    Job,
    Session,
    TaskControl,
    TenantQueue,
    UserLimit,
    Worker,
)
from django_tenantqueue.operations import control, sessions
from django_tenantqueue.queries.figures import Counts, add_figures, with_totals
from django_tenantqueue.states import State
from django_tenantqueue.status.visible import tenants_of
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import (
    make_duty,
    make_job,
    make_jobs,
    make_queue,
    make_worker,
    pause_task,
    state_of,
)
from tests.site import model_of
from tests.testapp.models import Report
from tests.testapp.tasks import noop

from .conftest import text_of, url_of
from .forms import form_values, inputs_of, say_yes

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db
Operator = Callable[..., Client]
OURS, THEIRS = "acme", "zebra"
LISTS = (
    *("tenantqueue", "job", "session", "userlimit", "concurrentjobmonitor", "schedule"),
    *("alertrule", "apitoken", "routing", "alert", "change"),
)
FLEET = ("worker", "taskcontrol", "duty", "retentionrule")
EVERYTHING = (
    *(f"{action}_{model}" for model in (*LISTS[:-2], *FLEET) for action in ("view", "change")),
    *("view_change", "view_alert", "add_tenantqueue", "add_userlimit", "add_taskcontrol"),
    *("add_retentionrule", "delete_retentionrule", "add_routing", "delete_routing"),
    *("add_schedule", "delete_schedule"),
)


SECRETS = tuple(f"{THEIRS}{end}" for end in ("-message", "-label", ".failing", ".task", ".Error"))
"""What pages say of the other tenant; they say again what the user has typed."""


def sees_ours(user: Any) -> list[str] | None:
    """Return the tenants of a member of staff in these tests."""
    return None if user.is_superuser else [OURS]


LIMITED = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.sees_ours"}


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    with override_settings(TENANTQUEUE=LIMITED):
        yield


@dataclass(frozen=True)
class Rows:
    """A row of each kind, of one tenant, with its name in all that it says."""

    queue: TenantQueue
    job: Job
    failed: Job
    session: Session
    user: UserLimit
    monitor: ConcurrentJobMonitor
    schedule: Schedule
    token: ApiToken
    alert: Alert
    routing: Routing
    report: Report

    @property
    def pages(self) -> dict[str, int]:
        """The models of the admin -> the id of the row."""
        return {
            "tenantqueue": self.queue.pk,
            "job": self.job.pk,
            "session": self.session.pk,
            "userlimit": self.user.pk,
            "concurrentjobmonitor": self.monitor.pk,
            "schedule": self.schedule.pk,
            "apitoken": self.token.pk,
            "alertrule": self.alert.rule.pk,
            "alert": self.alert.pk,
            "routing": self.routing.pk,
        }


def fill(tenant: str) -> Rows:
    queue = make_queue(tenant, f"{tenant}-queue", num_slots=2)
    report = Report.objects.create(title="Sales")
    source = {"source_type": "testapp.report", "source_id": str(report.pk)}
    job = make_job(queue, task=f"{tenant}.task", labels=[f"{tenant}-label"], **source)
    error = {
        "attempt": 1,
        "at": "2026-11-24T10:00:00+00:00",
        "class": f"{tenant}.Error",
        "message": f"{tenant}-message",
        "traceback": f"{tenant}-traceback",
    }
    failed = make_job(queue, state=State.ERROR, task=f"{tenant}.failing", errors=[error])
    make_job(make_queue(tenant, "halted", num_slots=0), task=f"{tenant}.halted")
    for _ in range(2):
        noop.using(tenant=tenant, session=f"{tenant}-session").delay()
    noop.using(tenant=tenant, limit_user=f"{tenant}-user").delay()
    monitor = ConcurrentJobMonitor.objects.start(
        f"{tenant}-monitor", [noop.call() for _ in range(3)], tenant=tenant, parallel=1
    )
    run_commit_hooks("default")
    for name, error_class in ((f"{tenant}.failing", ""), (f"{tenant}.failing", f"{tenant}.Error")):
        counts = Counts(started=7, failed=7, run_seconds=3.0, last_job_id=failed.pk)
        add_figures("default", with_totals({(queue.pk, name, error_class): counts}))
    shared = Counts(failed=3, last_job_id=failed.pk)
    add_figures("default", with_totals({(queue.pk, "shared.task", "SharedError"): shared}))
    session = Session.objects.get(tenant=tenant, kind=Session.Kind.SERIAL)
    control.tune_queue(queue.pk, weight=3)
    sessions.pause_sessions([session.pk])
    return Rows(
        queue,
        job,
        failed,
        session,
        UserLimit.objects.get(tenant=tenant, key=f"{tenant}-user"),
        monitor,
        make_schedule(f"{tenant}-schedule", noop, "0 3 * * *", tenant=tenant),
        make_token(f"{tenant}-token", tenant=tenant)[0],
        make_alert(tenant),
        make_routing(f"{tenant}.task", queue.name, tenant=tenant),
        report,
    )


def make_alert(tenant: str) -> Alert:
    columns = {"tenant": tenant, "queue": f"{tenant}-queue"}
    rule = AlertRule(
        name=f"{tenant}-rule", kind="queue_late", last_error=f"{tenant}-error", **columns
    )
    rule.webhook_url = "https://example.com/x"
    rule.save()
    return add_alert(rule, tenant)


def add_alert(rule: AlertRule, tenant: str) -> Alert:
    now = timezone.now()
    return Alert.objects.create(
        rule=rule,
        tenant=tenant,
        key="1",
        label=f"{tenant}-label",
        text=f"{tenant}-message",
        opened_at=now,
        seen_at=now,
    )


@pytest.fixture
def both(db: None) -> tuple[Rows, Rows]:
    """Rows of the tenant that the user sees, and the same of another one, with a busy fleet."""
    ours, theirs = fill(OURS), fill(THEIRS)
    make_worker(tenants=[THEIRS])
    make_duty()
    pause_task(f"{THEIRS}.other", allow_unknown=True)
    make_retention_rule(tenant=THEIRS, keep_days=9)
    control.retire([ours.queue.pk, theirs.queue.pk])
    control.reopen([ours.queue.pk, theirs.queue.pk])
    control.change_priority([ours.job.pk, theirs.job.pk], 120)
    control.retry([ours.failed.pk, theirs.failed.pk])
    return ours, theirs


def body(response: HttpResponse) -> str:
    """Return all that was sent, downloads included."""
    if response.streaming:
        return b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    return response.content.decode()


def addresses(ours: Rows, theirs: Rows) -> Iterator[str]:
    """Yield the pages that show rows, with the filters and searches that might find others."""
    yield "/admin/"
    yield "/admin/tenantqueue/"
    yield "/admin/tenantqueue/?hours=24"
    yield url_of("tenantqueue", "changelist") + "overview/?hours=1"
    failures = reverse("admin:tenantqueue_failures")
    for query in ("", f"?tenant={THEIRS}", f"?queue={THEIRS}-queue", f"?task={THEIRS}.failing"):
        yield failures + query
    group = reverse("admin:tenantqueue_failure_group")
    for pair in (f"{OURS}.failing&error={OURS}.Error", "shared.task&error=SharedError"):
        yield f"{group}?task={pair}"
    yield f"{group}?task={THEIRS}.failing&error={THEIRS}.Error"
    for tenant in (OURS, THEIRS):
        for query in (f"tenant={tenant}", f"tenant={tenant}&hours=168", f"tenant={tenant}&live=1"):
            yield f"{reverse('admin:tenantqueue_tenant')}?{query}"
        for task in (f"{tenant}.failing", "shared.task", noop.name):
            yield f"{reverse('admin:tenantqueue_task')}?task={task}"
            yield f"{reverse('admin:tenantqueue_task')}?task={task}&tenant={tenant}"
    for model in LISTS:
        listed = url_of(model, "changelist")
        queries = [
            "",
            f"?q={THEIRS}",
            f"?tenant={THEIRS}",
            f"?queue={THEIRS}-queue",
            f"?queue_id={theirs.queue.pk}",
            f"?q=%23{theirs.pages.get(model, theirs.job.pk)}",
            f"?q={THEIRS}.task",
            f"?q={THEIRS}+/+{THEIRS}-queue",
            "?state=error",
            "?state=unfinished",
            *(f"?trouble={trouble}" for trouble in ("late", "full", "failing", "no-worker")),
            "?o=5",
            f"?q={THEIRS}-label",
            f"?q=testapp.report:{theirs.report.pk}",
            f"?id={theirs.pages.get(model, 1)}",
        ]
        for query in queries:
            yield listed + query
            for form in ("csv", "jsonl"):
                yield f"{listed}export/{form}/{query}"
    for model, pk in ours.pages.items():
        yield url_of(model, "change", pk)
        yield url_of(model, "history", pk)
    yield url_of("concurrentjobmonitor", "change", ours.monitor.pk) + "?details=ready"
    yield url_of("tenantqueue", "add")
    yield url_of("userlimit", "add")


@pytest.mark.heavy
def test_no_page_search_filter_or_download_has_anything_of_another_tenant(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    ours, theirs = 0, []

    for address in addresses(*both):
        content = body(client.get(address, follow=True))
        ours += OURS in content
        typed = unquote_plus(address.partition("?")[2])
        secrets = [secret for secret in SECRETS if secret not in typed]
        secrets.append(THEIRS if THEIRS not in typed else f'/{both[1].job.pk}/change/"')
        theirs += [(address, secret) for secret in secrets if secret in content]

    assert theirs == []
    assert ours > 30


def test_alert_of_a_rule_of_all_tenants_is_seen_by_its_tenant_without_the_name_of_the_rule(
    operator: Operator, admin_client: Client
) -> None:
    client = operator(*EVERYTHING)
    rule = AlertRule.objects.create(name="zebra is slow", kind="queue_late")
    alert = add_alert(rule, OURS)
    hidden = [
        add_alert(AlertRule.objects.create(name=f"r{t}", kind="queue_late"), t)
        for t in ("", THEIRS)
    ]

    listed = body(client.get(url_of("alert", "changelist")))
    addresses_of = (url_of("alert", "change", alert.pk), "/admin/tenantqueue/")
    pages = [listed, *(body(client.get(address)) for address in addresses_of)]

    assert f"{OURS}-message" in listed
    for page in pages:
        assert "late queue" in page
        assert THEIRS not in page
    assert "-message" not in listed.replace(f"{OURS}-message", "")
    for row in hidden:
        assert client.get(url_of("alert", "change", row.pk)).status_code == 302
    assert "zebra is slow" in body(admin_client.get(url_of("alert", "changelist")))
    assert "zebra is slow" in body(admin_client.get("/admin/tenantqueue/"))


def test_first_page_counts_the_jobs_of_the_tenant_alone(
    operator: Operator, both: tuple[Rows, Rows], admin_client: Client
) -> None:
    client = operator(*EVERYTHING)

    text = text_of(client.get("/admin/tenantqueue/"))
    whole = text_of(admin_client.get("/admin/tenantqueue/"))

    assert "7 ended in error" in text
    assert "14 ended in error" in whole
    assert "acme / acme-queue" in text
    assert "lack a worker" not in text
    assert "queues without slots: acme/halted" in text
    assert "held jobs in paused sessions: acme/acme-session" in text.replace("Held", "held")
    assert "zebra/halted" in whole
    assert "zebra/zebra-session" in whole
    assert "0 / 7 of the queues that have a limit" in text
    assert "0 / 14 of the queues that have a limit" in whole
    assert "Workers" not in text
    assert "Workers" in whole
    assert "zebra / zebra-queue" in whole
    assert "ready jobs that no worker takes, in acme/acme-queue" in text.replace("Ready", "ready")


def test_list_of_jobs_is_full_whatever_other_tenants_have(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    ours, theirs = both
    make_jobs(theirs.queue, 120)
    listed = url_of("job", "changelist")

    text = text_of(operator(*EVERYTHING).get(listed))

    assert f"#{ours.job.pk}" in text


def test_unknown_tenant_and_hidden_one_look_the_same(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    listed = url_of("job", "changelist")

    for parameter in ("tenant={}", "queue={}-queue", "queue_id=99{}"):
        hidden = parameter.format(both[1].queue.pk if "id" in parameter else THEIRS)
        unknown = parameter.format("8" if "id" in parameter else "nobody")
        texts = [
            re.sub(r"\d\d:\d\d:\d\d", "", text_of(client.get(f"{listed}?{query}")))
            for query in (hidden, unknown)
        ]

        assert texts[0].replace(hidden.rpartition("=")[2], "") == texts[1].replace(
            unknown.rpartition("=")[2], ""
        )


@pytest.mark.parametrize("page", ["live/", "again/", "args.json", "result.json"])
def test_parts_of_a_job_of_another_tenant_are_not_found(
    operator: Operator, both: tuple[Rows, Rows], page: str
) -> None:
    client = operator(*EVERYTHING, "add_job")
    ours, theirs = (url_of("job", "change", rows.failed.pk) for rows in both)

    assert client.get(theirs.replace("change/", page)).status_code == 404
    assert client.post(theirs.replace("change/", page)).status_code == 404
    assert client.get(ours.replace("change/", page)).status_code in (200, 302, 404)


@pytest.mark.parametrize("page", ["change", "history", "delete"])
def test_row_of_another_tenant_is_not_found_by_its_address(
    operator: Operator, both: tuple[Rows, Rows], page: str
) -> None:
    client = operator(*EVERYTHING)
    _, theirs = both

    for model, pk in theirs.pages.items():
        response = client.get(url_of(model, page, pk))

        assert response.status_code in (302, 403, 404), model
        assert THEIRS not in body(response).replace(str(pk), "")
    details = url_of("concurrentjobmonitor", "changelist") + f"{theirs.monitor.pk}/details/csv/"
    assert client.get(details).status_code in (403, 404)


def test_fleet_has_no_page_for_a_limited_user(
    operator: Operator, both: tuple[Rows, Rows], admin_client: Client
) -> None:
    client = operator(*EVERYTHING)
    rows = {
        "worker": Worker.objects.get().pk,
        "taskcontrol": TaskControl.objects.get().pk,
        "duty": "clean",
        "retentionrule": RetentionRule.objects.get().pk,
    }

    for model in FLEET:
        assert admin_client.get(url_of(model, "changelist")).status_code == 200
        assert client.get(url_of(model, "changelist")).status_code == 403
        assert client.get(url_of(model, "changelist") + "export/csv/").status_code == 403
        assert client.get(url_of(model, "change", rows[model])).status_code in (302, 403)
    assert client.get(url_of("taskcontrol", "add")).status_code == 403
    assert client.get(url_of("retentionrule", "add")).status_code == 403


def test_action_on_rows_of_another_tenant_does_nothing(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    ours, theirs = both

    def act(model: str, action: str, pk: int) -> None:
        data = {"action": action, "_selected_action": pk, "index": "0", "_apply": "1"}
        client.post(url_of(model, "changelist"), data)

    for rows in (ours, theirs):
        act("tenantqueue", "pause_selected", rows.queue.pk)
        act("tenantqueue", "retire_selected", rows.queue.pk)
        act("job", "cancel_selected", rows.job.pk)
        act("userlimit", "pause_selected", rows.user.pk)
        act("concurrentjobmonitor", "cancel_selected", rows.monitor.pk)
        client.post(url_of("job", "change", rows.failed.pk), {"_cancel": "1", "_apply": "1"})

    assert TenantQueue.objects.get(pk=ours.queue.pk).paused
    assert TenantQueue.objects.get(pk=ours.queue.pk).retired
    assert state_of(ours.job.pk) == state_of(ours.failed.pk) == State.CANCELLED
    assert UserLimit.objects.get(pk=ours.user.pk).paused
    assert ConcurrentJobMonitor.objects.get(pk=ours.monitor.pk).cancelled_at
    kept = TenantQueue.objects.get(pk=theirs.queue.pk)
    assert not kept.paused
    assert not kept.retired
    assert state_of(theirs.job.pk) == state_of(theirs.failed.pk) == State.READY
    assert not UserLimit.objects.get(pk=theirs.user.pk).paused
    assert not ConcurrentJobMonitor.objects.get(pk=theirs.monitor.pk).cancelled_at


@pytest.mark.parametrize(
    ("button", "mine"),
    [("_retry", (State.READY, State.SCHEDULED)), ("_cancel", (State.ERROR, State.CANCELLED))],
)
def test_failures_of_another_tenant_are_neither_retried_nor_cancelled(
    operator: Operator, both: tuple[Rows, Rows], button: str, mine: tuple[State, State]
) -> None:
    client = operator(*EVERYTHING)
    for rows in both:
        Job.objects.filter(pk=rows.failed.pk).delete()
    error = {"attempt": 1, "class": "SharedError", "message": "m"}
    jobs = [
        make_job(rows.queue, state=state, task="shared.task", errors=[error], attempt=1)
        for rows in both
        for state in (State.ERROR, State.SCHEDULED)
    ]
    address = f"{reverse('admin:tenantqueue_failure_group')}?task=shared.task&error=SharedError"

    say_yes(client, client.post(address, {button: "1"}))

    assert [state_of(job.pk) for job in jobs] == [*mine, State.ERROR, State.SCHEDULED]


def test_action_on_all_that_match_leaves_other_tenants_alone(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING, "delete_job")
    ours, theirs = both
    listed = url_of("job", "changelist")
    chosen = {"_selected_action": ours.job.pk, "select_across": "1", "index": "0"}

    question = client.post(listed, {**chosen, "action": "cancel_selected"})
    answer = say_yes(client, question)
    TenantQueue.objects.exclude(name="admin").update(paused=True)
    run_pending()

    assert "Queue “admin”" not in text_of(question)
    assert answer.status_code == 200, "the user sees the page of the job that does it"
    assert state_of(ours.job.pk) == State.CANCELLED
    assert state_of(theirs.job.pk) == State.READY
    assert Job.objects.get(task="django_tenantqueue.bulk.cancel").state == State.SUCCESS
    assert Change.objects.get(action="cancel").tenant == OURS
    for tenant in (THEIRS, "nobody"):
        refused = client.post(
            f"{listed}?tenant={tenant}", {**chosen, "action": "cancel_selected"}, follow=True
        )
        assert f"Tenant '{tenant}' has no queue." in text_of(refused).replace("&#x27;", "'")


def test_bulk_action_of_another_user_is_not_retried(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    TenantQueue.objects.update(paused=True)
    client = operator(*EVERYTHING)
    other, (me,) = User.objects.create_superuser("root"), User.objects.exclude(username="root")
    theirs = bulk.start("cancel", {"tenant": OURS}, user=other)
    foreign = make_jobs(  # of one who sees more tenants, in the queue of one of these
        both[0].queue, 1, state=State.ERROR, task=theirs.task, source_type="internal",
        source_method=theirs.source_method, created_by=str(other.pk),
        errors=[{"class": "app.Error", "message": "", "attempt": 1}],
    )  # fmt: skip
    own = bulk.start("cancel", {"tenant": OURS}, user=me)
    control.cancel([own.pk])
    listed = url_of("job", "changelist")
    group = reverse(
        "admin:tenantqueue_failure_group", query={"task": theirs.task, "error": "app.Error"}
    )

    answers = [
        client.post(listed, {"action": "retry_selected", "_selected_action": foreign}, follow=True),
        client.post(url_of("job", "change", foreign[0]), {"_retry": "1"}, follow=True),
    ]
    grouped = client.post(group, {"_retry": "1", "_apply": "1"}, follow=True)
    client.post(listed, {"action": "retry_selected", "_selected_action": [own.pk]})

    assert state_of(foreign[0]) == State.ERROR
    for answer in answers:
        assert "Bulk actions of other users are not changed." in text_of(answer)
    assert "Bulk actions are retried on their own pages." in text_of(grouped)
    assert state_of(own.pk) == State.READY


def test_all_that_match_are_not_moved_to_another_tenant(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    data = {"_selected_action": both[0].job.pk, "select_across": "1", "index": "0"}
    data |= {"action": "move_selected", "_apply": "1"}
    listed = url_of("job", "changelist")

    named = client.post(listed, {**data, "tenant": THEIRS, "queue": f"{THEIRS}-queue"})
    unnamed = client.post(listed, {**data, "queue": f"{THEIRS}-queue"})

    assert f"You are not allowed to see tenant “{THEIRS}”." in text_of(named)
    assert "No tenant has a queue" in text_of(unnamed)
    assert not Job.objects.filter(task="django_tenantqueue.bulk.move").exists()
    user = operator()  # a user of some tenants
    for goal in (THEIRS, ""):
        with pytest.raises(InvalidArgument, match="not allowed to see tenant"):
            bulk.start(
                "move",
                {},
                {"tenant": goal, "queue": f"{THEIRS}-queue"},
                user=User.objects.get(pk=user.session["_auth_user_id"]),
            )


def test_first_page_saves_no_queue_of_another_tenant(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    address = url_of("tenantqueue", "changelist") + "overview/"

    for rows in both:
        data = {"queue": rows.queue.pk, "num_slots": "9", "weight": "3"}
        client.post(address, {**data, "initial-num_slots": "2", "initial-weight": "3"})

    slots = [TenantQueue.objects.get(pk=rows.queue.pk).num_slots for rows in both]
    assert slots == [9, 2]


def test_list_saves_no_queue_of_another_tenant(operator: Operator, both: tuple[Rows, Rows]) -> None:
    client = operator(*EVERYTHING)
    ours, theirs = both
    listed = url_of("tenantqueue", "changelist")
    posted = form_values(client.get(listed), "form-0-id")
    number = next(n for n in range(9) if posted[f"form-{n}-id"] == str(ours.queue.pk))
    posted |= {f"form-{number}-num_slots": "9", "_save": "Save"}

    client.post(listed, {**posted, f"form-{number}-id": str(theirs.queue.pk)})
    refused = TenantQueue.objects.get(pk=theirs.queue.pk).num_slots
    client.post(listed, posted)

    assert refused == 2
    assert TenantQueue.objects.get(pk=ours.queue.pk).num_slots == 9


COLUMNS = {
    "name": "new",
    "task": noop.name,
    "kind": "cron",
    "expression": "0 3 * * *",
    "catch_up": "skip",
    "overlap": "allow",
    "jitter_seconds": "0",
}
"""Of a new schedule."""


def test_schedule_for_all_tenants_is_neither_seen_nor_made_by_those_who_see_some(
    operator: Operator, settings: Any
) -> None:
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.only_without"}
    client = operator(*EVERYTHING)
    row = make_schedule("of-everybody", noop, "0 3 * * *", tenant=None)
    listed = url_of("schedule", "changelist")

    refused = client.post(url_of("schedule", "add"), {**COLUMNS, **inputs_of(None)})
    client.post(listed, {"action": "run_selected", "_selected_action": row.pk})

    assert "of-everybody" not in body(client.get(listed))
    assert client.get(url_of("schedule", "change", row.pk)).status_code == 302
    assert "You are not allowed to see all tenants." in text_of(refused)
    assert not Schedule.objects.filter(name="new").exists()
    tick = row.tick_at
    row.refresh_from_db()
    assert row.tick_at == tick, "it was not made due"


def test_schedule_of_another_tenant_is_neither_added_nor_run(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    ours, theirs = both

    refused = client.post(url_of("schedule", "add"), {**COLUMNS, "tenant": THEIRS})
    added = client.post(url_of("schedule", "add"), {**COLUMNS, "tenant": OURS})
    for rows in both:
        client.post(url_of("schedule", "change", rows.schedule.pk), {"_run_now": "1"})
        data = {"action": "run_selected", "_selected_action": rows.schedule.pk}
        client.post(url_of("schedule", "changelist"), data)
        data["action"] = "disable_selected"
        client.post(url_of("schedule", "changelist"), data)

    assert f"You are not allowed to see tenant “{THEIRS}”." in text_of(refused)
    assert added.status_code == 302, text_of(added)
    for row in (ours.schedule, theirs.schedule):
        row.refresh_from_db()
    assert (ours.schedule.enabled, theirs.schedule.enabled) == (False, True)
    assert ours.schedule.last_job_id
    assert theirs.schedule.last_job_id is None


@pytest.mark.parametrize("tenant", ["", THEIRS])
def test_form_does_not_tell_that_a_row_without_a_tenant_exists(
    operator: Operator, tenant: str
) -> None:
    client = operator(*EVERYTHING)
    limit_user("", "new", 3)
    make_token("new", tenant="")
    token = {"scopes": "read", "min_priority": "0", "max_priority": "400"}

    limit = client.post(url_of("userlimit", "add"), {"tenant": tenant, "key": "new"})
    other = client.post(url_of("apitoken", "add"), {**token, "tenant": tenant, "name": "new"})

    assert "has a limit already" not in text_of(limit)
    assert "already exists" not in text_of(other)


@pytest.mark.parametrize("model", ["tenantqueue", "userlimit"])
def test_row_of_another_tenant_cannot_be_added(operator: Operator, model: str) -> None:
    client = operator(*EVERYTHING)
    make_queue(THEIRS, "new")
    columns = {"name": "new", "num_slots": "3", "weight": "1", "burst": ""}
    columns |= {"key": "new"} if model == "userlimit" else {}
    before = TenantQueue.objects.count() + Session.objects.count()

    refused = client.post(url_of(model, "add"), {**columns, "tenant": THEIRS})
    unchanged = TenantQueue.objects.count() + Session.objects.count()
    added = client.post(url_of(model, "add"), {**columns, "tenant": OURS})

    text = text_of(refused)
    assert f"You are not allowed to see tenant “{THEIRS}”." in text
    assert "already exists" not in text
    assert unchanged == before
    assert added.status_code == 302, text_of(added)


@pytest.mark.parametrize("tenant", [THEIRS, ""])
def test_routing_of_another_tenant_cannot_be_added(operator: Operator, tenant: str) -> None:
    client = operator(*EVERYTHING)
    columns = {"pattern": "x", "queue": "default"}

    refused = client.post(url_of("routing", "add"), {**columns, **inputs_of(tenant)})
    added = client.post(url_of("routing", "add"), {**columns, "tenant": OURS})

    assert f"You are not allowed to see tenant “{tenant}”." in text_of(refused)
    assert added.status_code == 302, text_of(added)
    assert [row.tenant for row in Routing.objects.all()] == [OURS]


def test_jobs_are_not_moved_to_another_tenant(operator: Operator, both: tuple[Rows, Rows]) -> None:
    client = operator(*EVERYTHING)
    ours, theirs = both
    data = {"action": "move_selected", "_selected_action": ours.job.pk, "index": "0"}
    data |= {"_apply": "1", "tenant": THEIRS}

    for name in (theirs.queue.name, "unknown"):
        response = client.post(url_of("job", "changelist"), {**data, "queue": name})

        assert f"You are not allowed to see tenant “{THEIRS}”." in text_of(response)
        assert "has no queue" not in text_of(response)
    assert Job.objects.get(pk=ours.job.pk).queue_id == ours.queue.pk


def test_entry_about_several_tenants_says_nothing_of_the_others(
    operator: Operator, both: tuple[Rows, Rows]
) -> None:
    client = operator(*EVERYTHING)
    ours, _ = both
    assert Change.objects.filter(object_count=2, tenant="").count() == 4

    history = text_of(client.get(url_of("job", "history", ours.job.pk)))
    listed = text_of(client.get(url_of("change", "changelist")))

    assert "priority changed" in history
    assert "2 jobs" not in history
    assert "2 jobs" not in listed
    assert "acme / acme-queue" in listed  # that of the tenant's own queue


def test_user_who_sees_jobs_without_a_tenant_sees_no_entry_about_several_tenants(
    operator: Operator, both: tuple[Rows, Rows], settings: Any
) -> None:
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.only_without"}
    job = make_job(make_queue(""))
    control.change_priority([job.pk, both[1].job.pk], 7)
    client = operator(*EVERYTHING)

    assert THEIRS not in body(client.get(url_of("change", "changelist")))
    assert THEIRS not in body(client.get(url_of("job", "history", job.pk)))
    assert Change.objects.filter(tenant="").exists()


def test_entry_has_a_tenant_only_if_all_of_its_jobs_have_it() -> None:
    first, second = make_queue(OURS), make_queue(THEIRS)
    ids = [make_job(first).pk for _ in range(101)]

    control.change_priority([*ids, make_job(second).pk], 7)
    control.cancel([*ids, make_job(second).pk])
    control.change_priority([make_job(first).pk], 7)

    assert list(Change.objects.order_by("pk").values_list("tenant", flat=True)) == ["", "", OURS]


@pytest.mark.urls("tests.admin.office_urls")
def test_jobs_of_an_object_are_those_of_the_tenant(
    admin_client: Client, both: tuple[Rows, Rows], settings: Any
) -> None:
    page = f"/office/testapp/report/{both[1].report.pk}/change/"
    shown = f"#{both[1].job.pk}"
    assert shown in text_of(admin_client.get(page))

    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.only_ours"}

    assert shown not in text_of(admin_client.get(page))
    assert f"{THEIRS}.task" not in body(admin_client.get("/office/testapp/report/"))
    mine = f"/office/testapp/report/{both[0].report.pk}/change/"
    assert f"#{both[0].job.pk}" in text_of(admin_client.get(mine))


def only_ours(user: Any) -> tuple[str, ...]:
    return (OURS,)


def only_without(user: Any) -> tuple[str, ...]:
    """Return no tenant, as jobs have it that name none."""
    return ("",)


def returns(value: Any) -> Callable[[Any], Any]:
    return lambda user: value


a_string, numbers, a_number = returns("acme"), returns([7]), returns(7)
everything, nothing = returns(None), returns([])


@pytest.mark.parametrize("name", ["a_string", "numbers", "a_number"])
def test_what_is_no_list_of_tenants_is_an_error_that_names_the_setting(name: str) -> None:
    path = f"tests.admin.test_visible_tenants.{name}"
    with (
        override_settings(TENANTQUEUE={"VISIBLE_TENANTS": path}),
        pytest.raises(InvalidOption, match=r"VISIBLE_TENANTS .* must be a list of tenants"),
    ):
        tenants_of(AnonymousUser())


@pytest.mark.parametrize(
    ("name", "tenants"), [("everything", None), ("nothing", frozenset()), ("only_ours", {OURS})]
)
def test_callable_says_which_tenants_a_user_sees(name: str, tenants: Any) -> None:
    path = f"tests.admin.test_visible_tenants.{name}"
    with override_settings(TENANTQUEUE={"VISIBLE_TENANTS": path}):
        assert tenants_of(AnonymousUser()) == tenants


def test_user_without_tenants_sees_empty_lists(
    operator: Operator, both: tuple[Rows, Rows], settings: Any
) -> None:
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.nothing"}
    client = operator(*EVERYTHING)

    for model in LISTS:
        assert f"{OURS}-" not in body(client.get(url_of(model, "changelist")))
    assert "0 ended in error" in text_of(client.get("/admin/tenantqueue/"))
    data = {"_selected_action": both[0].job.pk, "select_across": "1", "index": "0"}
    data |= {"action": "retry_selected", "_apply": "1"}
    answer = client.post(url_of("job", "changelist"), data, follow=True)
    assert "You are not allowed to see any tenant." in text_of(answer)
    assert not TenantQueue.objects.filter(tenant="").exists()


EMPTY = {"pattern": "x", "queue": "default", "key": "x", "num_slots": "3", "weight": "1"}
ADDED = {
    "tenantqueue": EMPTY | {"name": "x", "burst": ""},
    "userlimit": EMPTY,
    "routing": EMPTY,
    "schedule": COLUMNS,
    "alertrule": {
        "name": "x",
        "kind": "queue_late",
        "webhook_format": "json",
        "log": "on",
        "threshold": "60",
        "range_minutes": "5",
        "repeat_minutes": "60",
        "max_per_hour": "9",
        "time_zone": "UTC",
    },
    "apitoken": {
        "name": "x",
        "scopes": ["read", "submit"],
        "min_priority": "0",
        "max_priority": "400",
    },
}
"""What the forms post that add a row, but its tenant."""
ADDING = (*EVERYTHING, "add_apitoken", "add_alertrule")
NOT_OURS = (
    *({"tenant": name} for name in (THEIRS, f" {THEIRS} ", f" {OURS} ", OURS.upper())),
    *({"tenant": name} for name in (f"{OURS}\u200b", "", " ")),
    *({"tenant": THEIRS, "tenant_choice": text} for text in ("one", "none", "every", "on", "")),
    *({"tenant": "", "tenant_choice": text} for text in ("one", "none", "every", "on")),
    {"tenant_choice": "every"},
    {"tenant": f"{OURS}:every", "tenant_choice": "one"},
    {},
)
"""What no user may post who sees one tenant alone."""
MIXED = tuple({"tenant": OURS, "tenant_choice": text} for text in ("none", "every", "on"))
"""The same, to forms in which one chooses a tenant, none or every one."""


def is_scope(model: str) -> bool:
    return bool(model_of(model)._meta.get_field("tenant").null)


@pytest.mark.parametrize("model", ADDED)
def test_form_adds_no_row_but_of_a_tenant_that_the_user_sees(
    operator: Operator, both: tuple[Rows, Rows], model: str
) -> None:
    client = operator(*ADDING)
    rows = model_of(model).objects
    before = rows.count()

    answers = [
        client.post(url_of(model, "add") + query, ADDED[model] | tenant)
        for tenant in (*NOT_OURS, *(MIXED if is_scope(model) else ()))
        for query in ("", "?_popup=1", f"?tenant={OURS}")
    ]
    added = rows.count() - before
    mine = client.post(url_of(model, "add"), {**ADDED[model], "tenant": OURS})

    assert {answer.status_code for answer in answers} == {200}
    assert added == 0
    assert mine.status_code in (200, 302), text_of(mine)
    assert rows.latest("pk").tenant == OURS
    assert rows.count() == before + 1


@pytest.mark.parametrize("model", ADDED)
def test_row_of_another_tenant_is_not_saved_whatever_the_form_lets_pass(
    operator: Operator, both: tuple[Rows, Rows], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = operator(*ADDING)
    row = model_of(model)
    monkeypatch.setattr(
        type(admin.site.get_model_admin(row)), "form_values", lambda *args: {"tenants": None}
    )
    before = [row.objects.count(), Change.objects.count()]

    tenants = (THEIRS, "", None) if is_scope(model) else (THEIRS, "")
    answers = [
        client.post(url_of(model, "add"), {**ADDED[model], **inputs_of(tenant)})
        for tenant in tenants
    ]

    assert {answer.status_code for answer in answers} == {403}
    assert [row.objects.count(), Change.objects.count()] == before
    assert not any(b"Bearer" in answer.content for answer in answers)


@pytest.mark.parametrize("model", ["schedule", "alertrule"])
@pytest.mark.parametrize("tenant", [THEIRS, "", None, f" {THEIRS}", OURS.upper()])
def test_row_is_not_given_to_another_tenant(
    operator: Operator, both: tuple[Rows, Rows], model: str, tenant: str | None
) -> None:
    client = operator(*ADDING)
    pk = both[0].pages[model]
    page = url_of(model, "change", pk)
    posted = form_values(client.get(page), "tenant")

    answer = client.post(page, {**posted, **inputs_of(tenant)})

    assert "You are not allowed to see" in text_of(answer)
    assert model_of(model).objects.get(pk=pk).tenant == OURS


@pytest.mark.parametrize("model", ["routing", "alertrule", "schedule", "apitoken"])
def test_who_sees_jobs_without_a_tenant_adds_rows_for_these_and_none_for_every_tenant(
    operator: Operator, both: tuple[Rows, Rows], settings: Any, model: str
) -> None:
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.admin.test_visible_tenants.only_without"}
    client = operator(*ADDING)
    make_routing("of-everybody", "default")
    rows = model_of(model).objects
    before = rows.count()
    page = body(client.get(url_of(model, "add")))
    offered = re.findall(r'<option value="(one|none|every)"', page)

    answer = client.post(url_of(model, "add"), {**ADDED[model], **inputs_of(None)})
    empty = client.post(url_of(model, "add"), {**ADDED[model], "tenant": ""})

    assert offered == ["none"]
    assert "You are not allowed to see all tenants." in text_of(answer)
    assert "Give the name of the tenant" in text_of(empty)
    assert rows.count() == before
    assert "of-everybody" not in body(client.get(url_of("routing", "changelist")))
    client.post(url_of(model, "add"), {**ADDED[model], **inputs_of("")})
    assert rows.count() == before + 1
    assert rows.latest("pk").tenant == ""


def listed_models() -> list[str]:
    return [
        model
        for model in (*LISTS, *FLEET)
        if admin.site.get_model_admin(model_of(model)).list_editable
    ]


@pytest.mark.parametrize("model", listed_models())
def test_list_posted_with_the_id_of_a_row_that_it_does_not_have_saves_nothing(
    operator: Operator, both: tuple[Rows, Rows], admin_client: Client, model: str
) -> None:
    client = operator(*ADDING) if model in LISTS else admin_client
    listed = url_of(model, "changelist")
    rows = model_of(model).objects.order_by("pk")
    before = list(rows.values())
    posted = form_values(client.get(listed), "form-0-id") | {"_save": "Save"}
    posted |= {f"form-0-{name}": "on" for name in ("paused", "enabled")}
    theirs = both[1].pages.get(model, 999999)

    for form_id in (theirs, "999999", "x", "", "9" * 30, "1\x00"):
        assert client.post(listed, {**posted, "form-0-id": form_id}).status_code == 200
    del posted["form-0-id"]
    assert client.post(listed, posted).status_code == 200

    assert list(rows.values()) == before


@pytest.mark.parametrize("model", [*LISTS, *FLEET])
def test_action_on_what_is_no_row_of_the_list_does_nothing(
    operator: Operator, both: tuple[Rows, Rows], admin_client: Client, model: str
) -> None:
    client = operator(*ADDING) if model in LISTS else admin_client
    rows = model_of(model).objects.order_by("pk")
    before = list(rows.values())
    actions = admin.site.get_model_admin(model_of(model)).actions or ()
    statuses = set()

    for pk in (both[1].pages.get(model, 999999), "x", "", "1\x00", "9" * 30, "-1"):
        for action in (*actions, "delete_selected", "unknown"):
            sent = {"_selected_action": pk, "index": "0", "_apply": "1", "post": "yes"}
            answer = client.post(url_of(model, "changelist"), {**sent, "action": action})
            statuses.add(answer.status_code)

    assert statuses <= {200, 302, 400, 403}
    assert list(rows.values()) == before
