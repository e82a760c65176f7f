"""Alert rules are added and tested in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.alerts.services import tune_alert_rule
from django_tenantqueue.models import Job
from django_tenantqueue.operations.actor import acting_as
from tests.browser.fitting import pages_that_fit
from tests.process.receivers import SECRET
from tests.site import admin_path

pytestmark = pytest.mark.django_db(transaction=True)
RULES = "/admin/tenantqueue_alerts/alertrule/"
ALERTS = "/admin/tenantqueue_alerts/alert/"
OpenPage = Callable[..., Page]


def test_rule_is_added_and_tested(open_page: OpenPage) -> None:
    page = open_page(f"{RULES}add/")
    page.get_by_label("Name:").fill("slow mails")
    page.get_by_label("Alert on:").select_option("queue_late")
    page.get_by_label("which tenants").select_option("every")
    page.get_by_label("Signing secret:").fill(SECRET)
    page.get_by_label("E-mail to:").fill("ops@example.com")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_label("Signing secret:")).to_have_value("")

    page.get_by_role("button", name="Send a test").click()

    expect(page.locator(".messagelist")).to_contain_text(f"#{Job.objects.get().pk}")
    assert AlertRule.objects.get().webhook_secret == SECRET


def make_some() -> tuple[AlertRule, Alert]:
    now = timezone.now()
    rule = make_alert_rule(
        "failures " * 10,
        "task_failing",
        tenant="acme" * 20,
        task="a_package.tasks." + "n" * 90,
        webhook_url="https://chat.example.com/hook/" + "x" * 80,
        webhook_secret=SECRET,
        emails="ops@example.com, somebody.else@example.com",
        log=True,
        quiet_from="22:00",
        quiet_until="06:00",
        time_zone="Europe/Berlin",
    )
    AlertRule.objects.filter(pk=rule.pk).update(checked_at=now)
    wait = make_alert_rule("slow mails", "queue_late", queue="mails", log=True)
    broken = make_alert_rule("sessions", "session_halted")
    AlertRule.objects.filter(pk=broken.pk).update(last_error="OSError: " + "no space " * 20)
    alerts = []
    for number, end in ((1, None), (2, now)):
        for of, label in ((rule, "a_package.tasks." + "n" * 90), (wait, f"acme / mails-{number}")):
            alert = Alert.objects.create(
                rule=of,
                key=str(number),
                label=label,
                text="12 of 12 runs failed in the last 1 h.",
                opened_at=now - timedelta(minutes=7),
                seen_at=now,
                notified_at=now,
                resolved_at=end,
            )
            alerts.append(alert)
    return rule, alerts[0]


@pytest.mark.parametrize(("width", "scheme"), [(420, "light"), (1400, "dark")])
def test_nothing_sticks_out_of_the_window(open_page: OpenPage, width: int, scheme: str) -> None:
    rule, alert = make_some()
    page = open_page(RULES, viewport={"width": width, "height": 900}, color_scheme=scheme)

    pages = {
        "list": RULES,
        "rule": f"{RULES}{rule.pk}/change/",
        "add": f"{RULES}add/",
        "alerts": ALERTS,
        "alert": f"{ALERTS}{alert.pk}/change/",
        "home": "/admin/tenantqueue/",
    }
    assert list(pages_that_fit(page, pages)) == list(pages)


@pytest.mark.parametrize("model", ["alert", "change"])
def test_all_columns_fit_a_usual_window(open_page: OpenPage, model: str) -> None:
    now, tenant = timezone.now(), "a-tenant-with-a-long-name"
    task = "shop.reporting.tasks.build_the_monthly_report_of_all_customers"
    rule = make_alert_rule("no worker for the reports", "no_worker_takes", tenant=tenant, log=True)
    Alert.objects.create(
        rule=rule,
        key="1",
        label=f"{tenant} / reports_of_the_month: {task}",
        text="No worker takes its jobs. The first one has waited for 2 h 13 min.",
        opened_at=now,
        seen_at=now,
        notified_at=now,
    )
    with acting_as("operations.of.all.regions@example-company.com", "command"):
        url = "https://hooks.example.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
        tune_alert_rule(rule.pk, webhook_url=url, emails="operations.of.all.regions@example.com")

    page = open_page(admin_path(model), viewport={"width": 1400, "height": 800})

    results = page.locator("#changelist .results")
    assert results.evaluate("e => e.scrollWidth - e.clientWidth") == 0
