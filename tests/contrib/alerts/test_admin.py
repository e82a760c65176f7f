"""Alert rules and alerts in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.alerts.services import (
    disable_alert_rules,
    enable_alert_rules,
    tune_alert_rule,
)
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.queues import forget_queues
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import form_values, inputs_of
from tests.process.receivers import SECRET

pytestmark = pytest.mark.django_db
ADD = "/admin/tenantqueue_alerts/alertrule/add/"
LIST = "/admin/tenantqueue_alerts/alertrule/"
ALERTS = "/admin/tenantqueue_alerts/alert/"
URL = "https://chat.example.com/hook/very-secret"
OTHER_SECRET = "whsec_" + "A" * 32
COLUMNS = {
    "name": "slow mail",
    "kind": "queue_late",
    "range_minutes": "60",
    "webhook_format": "json",
    "max_per_hour": "12",
    "enabled": "on",
    "_save": "Save",
}


def open_alert(rule: AlertRule, label: str = "acme / mail") -> Alert:
    now = timezone.now()
    return Alert.objects.create(
        rule=rule,
        tenant=rule.tenant,
        key=label,
        label=label,
        text="It waits.",
        opened_at=now,
        seen_at=now,
    )


def edit(client: Client, rule: AlertRule, **values: str) -> Any:
    page = client.get(url_of("alertrule", "change", rule.pk))
    form = page.context["adminform"].form
    shown = {name: form[name].value() for name in form.fields}
    data = {n: "on" if v is True else v for n, v in shown.items() if v not in (None, False)}
    initial = {
        form.add_initial_prefix(name): data[name]
        for name in form.fields
        if form.fields[name].show_hidden_initial and name in data
    }
    whose = inputs_of(rule.tenant) if "tenant" in data else {}
    posted = {**data, **whose, **initial, **values, "_save": "Save"}
    return client.post(url_of("alertrule", "change", rule.pk), posted, follow=True)


def assert_nothing_secret(text: str) -> None:
    assert "very-secret" not in text
    assert SECRET not in text
    assert OTHER_SECRET not in text


def test_rule_is_added_edited_and_recorded_without_its_secrets(admin_client: Client) -> None:
    added = {**COLUMNS, "webhook_url": URL, "webhook_secret": SECRET, "tenant": "acme"}
    admin_client.post(ADD, added, follow=True)
    rule = AlertRule.objects.get()
    assert (rule.name, rule.tenant, rule.webhook_secret) == ("slow mail", "acme", SECRET)

    page = edit(admin_client, rule, threshold="30")
    rule.refresh_from_db()
    assert (rule.threshold, rule.webhook_secret, rule.webhook_url) == (30, SECRET, URL)
    assert SECRET not in page.content.decode()

    edit(admin_client, rule, webhook_secret=OTHER_SECRET, webhook_url=f"{URL}-2")
    rule.refresh_from_db()
    assert (rule.webhook_secret, rule.webhook_url) == (OTHER_SECRET, f"{URL}-2")
    edit(admin_client, rule, webhook_secret="-")
    rule.refresh_from_db()
    assert rule.webhook_secret == ""

    changes = list(Change.objects.order_by("pk").values_list("action", "before", "after", "actor"))
    assert [change[0] for change in changes] == ["add", "tune", "tune", "tune"]
    assert {change[3] for change in changes} == {"admin"}
    assert changes[1][2] == {"threshold": 30.0}
    assert_nothing_secret(str(changes))
    assert changes[2][2]["webhook_url"] == "https://chat.example.com/… (new)"
    history = admin_client.get(url_of("alertrule", "history", rule.pk))
    assert_nothing_secret(history.content.decode())


def test_form_says_what_is_wrong(admin_client: Client) -> None:
    wrong = {
        **COLUMNS,
        "kind": "session_halted",
        "task": "a.task",
        "webhook_url": "ftp://x/",
        "quiet_from": "22:00",
    }

    text = text_of(admin_client.post(ADD, wrong))

    assert "the condition does not use it" in text
    assert "Give an address that begins with" in text
    assert "Give both times, or none" in text
    assert not AlertRule.objects.exists()


def test_secrets_are_masked_for_those_who_may_view_only(operator: Callable[..., Client]) -> None:
    rule = make_alert_rule("rule", "queue_late", webhook_url=URL, webhook_secret=SECRET)
    client = operator("view_alertrule")

    page = client.get(url_of("alertrule", "change", rule.pk))
    assert "https://chat.example.com/…" in text_of(page)
    for address in (LIST, f"{LIST}export/csv/", f"{LIST}export/jsonl/"):
        response = client.get(address)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        assert_nothing_secret(content.decode())
    assert_nothing_secret(page.content.decode())
    assert client.post(page.wsgi_request.path, {"_send_test": "1"}).status_code == 403


def test_test_button_enqueues_a_message_for_each_receiver(admin_client: Client) -> None:
    rule = make_alert_rule("rule", "queue_late", webhook_url=URL, log=True)
    address = url_of("alertrule", "change", rule.pk)

    page = admin_client.post(address, {"_send_test": "1"}, follow=True)

    jobs = Job.objects.select_related("queue").order_by("pk")
    assert [(job.queue.name, job.args["kwargs"]["channel"]) for job in jobs] == [
        ("alerts", "webhook"),
        ("alerts", "log"),
    ]
    assert all(f"#{job.pk}" in text_of(page) for job in jobs)
    assert_nothing_secret(str([job.args for job in jobs]))

    control.retire(TenantQueue.objects.filter(name="alerts").values_list("pk", flat=True))
    forget_queues()
    page = admin_client.post(address, {"_send_test": "1"}, follow=True)
    assert "Nothing was enqueued" in text_of(page)

    tune_alert_rule(rule.pk, webhook_url="", log=False)
    page = admin_client.post(address, {"_send_test": "1"}, follow=True)
    assert "has no recipients" in text_of(page)


def test_rules_are_switched_and_deleted(admin_client: Client) -> None:
    rule = make_alert_rule("rule", "queue_late")
    alert = open_alert(rule)
    chosen = {"_selected_action": rule.pk}

    admin_client.post(LIST, {"action": "disable_selected", **chosen})
    alert.refresh_from_db()
    assert alert.resolved_at is not None
    admin_client.post(LIST, {"action": "enable_selected", **chosen})
    assert AlertRule.objects.get().enabled
    question = admin_client.post(LIST, {"action": "delete_selected", **chosen})
    assert "rule" in text_of(question)
    admin_client.post(LIST, {"action": "delete_selected", "post": "yes", **chosen})

    assert not AlertRule.objects.exists()
    assert not Alert.objects.exists()
    actions = list(Change.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["add", "disable", "enable", "delete"]


def test_operations_switch_only_what_is_different() -> None:
    rule = make_alert_rule("rule", "queue_late", enabled=False)

    assert disable_alert_rules([rule.pk]) == []
    assert enable_alert_rules([rule.pk]) == [rule.pk]
    tune_alert_rule(rule.pk, enabled=True)

    assert Change.objects.count() == 2


def test_lists_show_what_is_open(admin_client: Client) -> None:
    rule = make_alert_rule("rule", "queue_late", emails="ops@example.com")
    open_alert(rule)
    old = open_alert(rule, "acme / old")
    Alert.objects.filter(pk=old.pk).update(resolved_at=timezone.now())

    assert "1 open" in text_of(admin_client.get(LIST))
    shown = text_of(admin_client.get(f"{ALERTS}?open=yes"))
    assert "acme / mail" in shown
    assert "acme / old" not in shown
    assert "It waits." in text_of(admin_client.get(url_of("alert", "change", old.pk)))
    home = admin_client.get("/admin/tenantqueue/")
    assert "Open alerts: 1, of the rules * / rule" in text_of(home)
    assert f'href="{ALERTS}?open=yes"' in home.content.decode()


def test_lists_need_no_more_queries_for_more_rows(admin_client: Client) -> None:
    counts = []
    for number in range(2):
        for nth in range(1 + 5 * number):
            rule = make_alert_rule(f"rule {number} {nth}", "queue_late")
            open_alert(rule)
        for address in (LIST, ALERTS):
            with CaptureQueriesContext(connection) as queries:
                admin_client.get(address)
            counts.append(len(queries))

    assert counts[:2] == counts[2:]


def visible(user: Any) -> list[str] | None:
    return None if user.is_superuser else ["acme", ""]


def test_tenant_of_a_rule_is_changed_and_its_change_says_so(admin_client: Client) -> None:
    rule = make_alert_rule("late", "queue_late", tenant="", log=True)
    for tenant in (None, "acme", None, ""):
        edit(admin_client, rule, **inputs_of(tenant))
        rule.refresh_from_db()
        assert rule.tenant == tenant

    changes = Change.objects.filter(action="tune").order_by("pk")
    assert [(one.before["tenant"], one.after["tenant"]) for one in changes] == [
        ("", None),
        (None, "acme"),
        ("acme", None),
        (None, ""),
    ]
    listed = text_of(admin_client.get("/admin/tenantqueue/change/"))
    for text in ("no tenant → every tenant", "every tenant → acme", "every tenant → no tenant"):
        assert text in listed


def test_tenant_that_another_operator_has_changed_meanwhile_is_a_conflict(
    admin_client: Client,
) -> None:
    rule = make_alert_rule("late", "queue_late", tenant="", log=True)
    page = url_of("alertrule", "change", rule.pk)
    shown = form_values(admin_client.get(page), "webhook_url")
    tune_alert_rule(rule.pk, tenant=None)

    answer = admin_client.post(page, {**shown, **inputs_of("acme")})

    assert "You changed this from no tenant to acme, but meanwhile" in text_of(answer)
    assert "set it to every tenant" in text_of(answer)
    again = form_values(answer, "webhook_url")
    admin_client.post(page, again)
    rule.refresh_from_db()
    assert rule.tenant == "acme"


@override_settings(TENANTQUEUE={"VISIBLE_TENANTS": f"{__name__}.visible"})
def test_users_see_and_edit_the_rules_of_their_tenants_only(
    operator: Callable[..., Client],
) -> None:
    ours = make_alert_rule("ours", "queue_late", tenant="acme", log=True)
    theirs = make_alert_rule("theirs", "queue_late", tenant="other", log=True)
    all_of_them = make_alert_rule("of-all", "queue_late", log=True)
    alerts = [open_alert(rule, f"object of {rule.name}") for rule in (ours, theirs, all_of_them)]
    client = operator(
        *("view_alertrule", "add_alertrule", "change_alertrule", "delete_alertrule"),
        *("view_alert", "view_tenantqueue"),
    )

    for address in (LIST, ALERTS, "/admin/tenantqueue/", f"{ALERTS}export/csv/"):
        response = client.get(address)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        assert b"ours" in content, address
        assert b"theirs" not in content, address
        assert b"of-all" not in content, address
    for rule, alert in ((theirs, alerts[1]), (all_of_them, alerts[2])):
        assert client.get(url_of("alertrule", "change", rule.pk)).status_code == 302
        assert client.get(url_of("alert", "change", alert.pk)).status_code == 302
        client.post(url_of("alertrule", "change", rule.pk), {"_send_test": "1"})
        for action in ("disable_selected", "delete_selected"):
            client.post(LIST, {"action": action, "_selected_action": rule.pk, "post": "yes"})
    for tenant in ("other", None):
        client.post(ADD, {**COLUMNS, **inputs_of(tenant)})
        edit(client, ours, **inputs_of(tenant))
    client.post(ADD, {**COLUMNS, "tenant": "acme", "name": "added"})
    client.post(url_of("alertrule", "change", ours.pk), {"_send_test": "1"})

    rows = list(AlertRule.objects.order_by("pk").values_list("name", "tenant", "enabled"))
    assert rows == [
        ("ours", "acme", True),
        ("theirs", "other", True),
        ("of-all", None, True),
        ("added", "acme", True),
    ]
    assert [job.queue.tenant for job in Job.objects.select_related("queue")] == ["acme"]
