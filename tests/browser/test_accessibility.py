"""Pages are usable by keyboard and screen reader: axe-core finds nothing serious on them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page, expect

from django_tenantqueue.admin.links import task_url, tenant_url
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.models import Alert
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.models import ConcurrentJobMonitor, Session, UserLimit
from django_tenantqueue.operations import control, sessions
from django_tenantqueue.queries.figures import ALL, Counts, add_figures
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_commit_hooks
from tests.factories import cap_task, make_duty, make_job, make_jobs, make_queue, make_worker
from tests.site import admin_path
from tests.testapp.tasks import noop

NEEDS = "alerts api routing"
pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]
ADMIN = "/admin/tenantqueue/"
LISTS = (
    *("tenantqueue", "job", "session", "userlimit", "concurrentjobmonitor", "worker"),
    *("taskcontrol", "duty", "alertrule", "alert", "routing", "change"),
    "apitoken",
)
SERIOUS = ("serious", "critical")


def fill() -> list[str]:
    """Make rows with troubles, and return the addresses of all pages."""
    now = timezone.now()
    queue = make_queue("acme", "reports", num_slots=2)
    paused = make_queue("initech", "mails", paused=True)
    error = {
        "attempt": 1,
        "at": now.isoformat(),
        "class": "ValueError",
        "message": "no such report",
        "traceback": "Traceback (most recent call last):\n  File …\nValueError: no such report",
    }
    failed = make_job(queue, state=State.ERROR, errors=[error], started_at=now)
    worker = make_worker()
    running = make_job(
        queue,
        state=State.RUNNING,
        worker_id=worker.pk,
        started_at=now,
        progress_done=3,
        progress_total=10,
    )
    waiting = make_job(paused, created_at=now - timedelta(hours=1))
    for _ in range(3):
        noop.using(tenant="acme", session="payroll").delay()
        noop.using(tenant="acme", limit_user="eve").delay()
    monitor = ConcurrentJobMonitor.objects.start(
        "letters", [noop.call() for _ in range(9)], tenant="acme", parallel=2
    )
    run_commit_hooks("default")
    make_jobs(queue, 2, state=State.ERROR, monitor_id=monitor.pk, errors=[error])
    sessions.pause_sessions([Session.objects.get(kind=Session.Kind.SERIAL).pk])
    cap_task(noop.name, 1)
    control.tune_queue(queue.pk, weight=3)
    control.change_priority([waiting.pk], 120)
    counts = Counts(started=9, succeeded=6, failed=3, run_seconds=4.0, waits=[4, 3], runs=[2, 7])
    for key in ((ALL, "", ""), (ALL, noop.name, ""), (queue.pk, noop.name, "")):
        add_figures("default", {key: counts})
    of_error = Counts(failed=3, last_job_id=failed.pk)
    for queue_id in (ALL, queue.pk):
        add_figures("default", {(queue_id, noop.name, "ValueError"): of_error})
    rule = make_alert_rule("slow", "queue_late", tenant="acme", emails="ops@example.com")
    alert = Alert.objects.create(
        rule=rule, key="1", label="acme / reports", text="It waits.", opened_at=now, seen_at=now
    )
    group = urlencode({"task": noop.name, "error": "ValueError"})
    rows = {
        "tenantqueue": queue.pk,
        "session": Session.objects.get(kind=Session.Kind.SERIAL).pk,
        "userlimit": UserLimit.objects.get(key="eve").pk,
        "concurrentjobmonitor": monitor.pk,
        "worker": worker.pk,
        "duty": make_duty().pk,
        "alertrule": rule.pk,
        "alert": alert.pk,
        "routing": make_routing("reports.*", "reports", tenant="acme").pk,
        "apitoken": make_token("billing", tenant="acme")[0].pk,
    }
    jobs = [f"{ADMIN}job/{job.pk}/change/" for job in (failed, running, waiting)]
    return [
        ADMIN,
        *(admin_path(model) for model in LISTS),
        *(f"{admin_path(model)}{pk}/change/" for model, pk in rows.items()),
        f"{ADMIN}tenantqueue/{queue.pk}/history/",
        f"{ADMIN}tenantqueue/add/",
        *(f"{admin_path(model)}add/" for model in ("routing", "apitoken")),
        *jobs,
        f"{ADMIN}job/{failed.pk}/again/",
        f"{ADMIN}job/failures/",
        f"{ADMIN}job/failures/group/?{group}",
        tenant_url("acme"),
        task_url(noop.name),
    ]


def ask_about_all(page: Page) -> None:
    """Choose an action on all jobs that match; leave the page that asks open."""
    page.goto(f"{ADMIN}job/?state=error")
    page.check("#action-toggle")
    page.select_option("select[name=action]", "retry_selected")
    page.evaluate("document.querySelector('input.select-across').value = 1")  # more than one page
    page.click("button[name=index]")
    expect(page.locator("#content")).to_contain_text("Jobs that match and can be changed")


FAILED = {"resultTypes": ["violations"]}
RULES = {"light": FAILED, "dark": {**FAILED, "runOnly": ["color-contrast"]}}
"""Dark pages differ by their colors alone."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: OpenPage, scheme: str) -> None:
    addresses = fill()
    page = open_page(ADMIN, color_scheme=scheme)
    axe = Axe()
    found = []

    def look(where: str) -> None:
        for violation in axe.run(page, options=RULES[scheme]).response["violations"]:
            if violation["impact"] in SERIOUS:
                nodes = [node["html"] for node in violation["nodes"]]
                found.append((where, violation["id"], len(nodes), nodes[0]))

    for address in addresses:
        page.goto(address)
        look(address)
    ask_about_all(page)
    look("question of a bulk action")

    assert not found, "\n".join(map(str, found))
