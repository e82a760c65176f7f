"""The page of a task: its figures, its failures, and its limits, which are edited there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from django_tenantqueue.admin.links import task_url
from django_tenantqueue.models import Change, Figure, TaskControl
from django_tenantqueue.queries.figures import ALL
from django_tenantqueue.states import State
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import form_values, say_yes
from tests.admin.test_tenant_page import NAMES
from tests.admin.test_visible_tenants import LIMITED, OURS, THEIRS
from tests.factories import make_figure, make_job, make_queue
from tests.testapp.tasks import noop

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db
Operator = Callable[..., Client]
TASK = "app.tasks.send"
VIEW = ("view_job",)
CONTROL = ("view_job", "view_taskcontrol", "add_taskcontrol", "change_taskcontrol")


def figure(queue_id: int, ago: timedelta, *, minutes: int = 1, error: str = "", **counts: object):
    """Write a figure of the task, of the minute, hour or day in which that moment was."""
    at = timezone.now() - ago
    begin = at.timestamp() // (60 * minutes) * 60 * minutes
    zeros = dict.fromkeys(("started", "succeeded", "failed", "retried", "cancelled"), 0)
    values = {**zeros, "wait_seconds": 0, "run_seconds": 0, "waits": [], "runs": [], **counts}
    return Figure.objects.create(
        queue_id=queue_id,
        at=at.fromtimestamp(begin, at.tzinfo),
        task=TASK,
        error=error,
        minutes=minutes,
        **values,
    )


def lines_of(response) -> dict[str, list[str]]:
    return {str(title): values for title, values in response.context["lines"]}


def test_ranges_have_their_own_sums_and_percentiles(admin_client: Client) -> None:
    short, long = [0, 0, 9], [0] * 10 + [1]
    figure(ALL, timedelta(minutes=3), started=9, succeeded=9, waits=short, runs=short)
    figure(ALL, timedelta(hours=5), minutes=60, started=90, succeeded=60, failed=30)
    figure(ALL, timedelta(days=3), minutes=60, started=1, succeeded=1, waits=long, runs=long)
    figure(ALL, timedelta(days=9), minutes=1440, started=500, succeeded=500)

    lines = lines_of(admin_client.get(task_url(TASK)))

    assert lines["Started"] == ["9", "99", "100"]
    assert lines["Failed"] == ["0.0 %", "30.3 %", "30.0 %"]
    assert lines["Wait, p50"] == ["3 ms", "3 ms", "3 ms"]
    assert lines["Wait, p99"] == ["4 ms", "4 ms", "973 ms"]
    assert lines["Run time, p99"] == ["4 ms", "4 ms", "973 ms"]


@pytest.mark.parametrize(("hours", "points"), [(1, 61), (24, 25), (168, 57)])
def test_each_run_is_in_one_point_of_the_chart(
    admin_client: Client, hours: int, points: int
) -> None:
    for ago in (timedelta(minutes=1), timedelta(minutes=59)):
        figure(ALL, ago, started=4)

    response = admin_client.get(task_url(TASK, hours=hours))

    (tile,) = [tile for tile in response.context["tiles"] if "started" in tile.title]
    line = tile.spark.partition('<polyline points="')[2].partition('"')[0]
    assert len(line.split()) == points


def test_histogram_has_a_bar_for_each_length(admin_client: Client) -> None:
    figure(ALL, timedelta(minutes=2), started=5, waits=[0, 0, 4, 0, 1], runs=[0] * 30 + [2])

    response = admin_client.get(task_url(TASK))

    waits, runs = response.context["waits"], response.context["runs"]
    assert waits.count("<rect") == 3
    assert "<title>≤ 4 ms: 4</title>" in waits
    assert "<title>≤ 8 ms: 0</title>" in waits
    assert "<title>&gt; 6 d 5 h: 2</title>" in runs
    assert "No runs in this range." in text_of(admin_client.get(task_url("app.never")))


def test_figures_and_failures_are_those_of_the_tenant_when_one_is_asked_for(
    admin_client: Client,
) -> None:
    mine, theirs = make_queue("acme"), make_queue("other")
    for queue_id, number in ((mine.pk, 3), (theirs.pk, 40), (ALL, 43)):
        figure(queue_id, timedelta(minutes=2), started=number, failed=number)
        error = f"Error{queue_id}" if queue_id else "Any"
        figure(queue_id, timedelta(minutes=2), error=error, failed=number)
    make_job(theirs, state=State.RUNNING, task=TASK)

    response = admin_client.get(task_url(TASK, tenant="acme"))
    everywhere = admin_client.get(task_url(TASK))

    assert lines_of(response)["Started"] == ["3", "3", "3"]
    assert lines_of(everywhere)["Started"] == ["43", "43", "43"]
    assert f"Error{mine.pk}" in text_of(response)
    assert f"Error{theirs.pk}" not in text_of(response)
    assert "Running jobs 0" in text_of(response)
    assert "Running jobs 1" in text_of(everywhere)


def test_page_of_jobs_without_a_tenant_has_no_link_to_the_failures_of_all(
    admin_client: Client,
) -> None:
    queue = make_queue("")
    for error in ("", "ValueError"):
        figure(queue.pk, timedelta(minutes=2), error=error, failed=3)

    without = admin_client.get(task_url(TASK, tenant=""))

    assert "ValueError" in text_of(without)
    assert "/failures/" not in without.content.decode()
    assert "/failures/" in admin_client.get(task_url(TASK)).content.decode()


def test_limits_are_edited_where_there_was_no_control(admin_client: Client) -> None:
    form = form_values(admin_client.get(task_url(TASK)), "_limits")

    posted = {**form, "num_slots": "3", "max_per_second": "2.5"}
    response = admin_client.post(task_url(TASK), posted, follow=True)

    control = TaskControl.objects.get()
    assert (control.task, control.num_slots, control.max_per_second) == (TASK, 3, 2.5)
    assert "slots nothing → 3; starts per second nothing → 2.5" in text_of(response)
    assert Change.objects.get().actor == "admin"


@pytest.mark.parametrize("posted", [{}, {"num_slots": "-1"}, {"max_per_second": "none"}])
def test_no_control_is_left_where_nothing_was_set(admin_client: Client, posted: dict) -> None:
    form = form_values(admin_client.get(task_url(TASK)), "_limits")

    response = admin_client.post(task_url(TASK), {**form, **posted}, follow=True)

    assert response.status_code == 200
    assert not TaskControl.objects.exists()
    assert ("errorlist" in response.content.decode()) is bool(posted)


def test_change_by_another_operator_is_shown_and_not_undone(admin_client: Client) -> None:
    control = TaskControl.objects.create(task=TASK, num_slots=2)
    form = form_values(admin_client.get(task_url(TASK)), "_limits")
    TaskControl.objects.update(num_slots=9)

    text = text_of(admin_client.post(task_url(TASK), {**form, "num_slots": "4"}))

    control.refresh_from_db()
    assert control.num_slots == 9
    assert "another operator set it to 9" in text


def test_task_is_paused_after_a_yes_and_resumed(admin_client: Client) -> None:
    question = admin_client.post(task_url(TASK), {"_pause": "1"})
    before = TaskControl.objects.exists()
    said = text_of(say_yes(admin_client, question))

    assert not before
    assert "The task was paused." in said
    assert TaskControl.objects.get().paused is True
    assert "The task was resumed." in text_of(
        admin_client.post(task_url(TASK), {"_resume": "1"}, follow=True)
    )
    assert TaskControl.objects.get().paused is False


@pytest.mark.parametrize("missing", CONTROL[1:])
def test_limits_need_the_permissions_of_task_controls(operator: Operator, missing: str) -> None:
    client = operator(*(name for name in CONTROL if name != missing))

    page = client.get(task_url(TASK))
    codes = [
        client.post(task_url(TASK), posted).status_code
        for posted in ({"_limits": "1", "num_slots": "3"}, {"_pause": "1", "_apply": "1"})
    ]

    allowed = missing == "view_taskcontrol"
    assert ('name="num_slots"' in page.content.decode()) is allowed
    assert codes == ([302, 302] if allowed else [403, 403])
    assert TaskControl.objects.exists() is allowed


def test_page_needs_the_permission_to_view_jobs(operator: Operator) -> None:
    assert operator("view_tenantqueue", *CONTROL[1:]).get(task_url(TASK)).status_code == 403


def test_limited_staff_sees_the_figures_of_its_tenants_and_no_limits(operator: Operator) -> None:
    ours, theirs = make_queue(OURS), make_queue(THEIRS)
    for queue_id, number in ((ours.pk, 3), (theirs.pk, 40), (ALL, 43)):
        figure(queue_id, timedelta(minutes=2), started=number)
        figure(queue_id, timedelta(minutes=2), error="E", failed=number)
    TaskControl.objects.create(task=TASK, num_slots=77)
    with override_settings(TENANTQUEUE=LIMITED):
        client = operator(*CONTROL)
        page, other = client.get(task_url(TASK)), client.get(task_url(TASK, tenant=THEIRS))
        posted = client.post(task_url(TASK), {"_pause": "1", "_apply": "1"})

    assert lines_of(page)["Started"] == ["3", "3", "3"]
    assert THEIRS not in page.content.decode()
    assert "77" not in text_of(page)
    assert (other.status_code, posted.status_code) == (404, 403)
    assert TaskControl.objects.get().paused is False


@pytest.mark.parametrize("name", [name for name in NAMES if name.strip()])
def test_page_takes_every_name_that_a_task_may_have(admin_client: Client, name: str) -> None:
    job = make_job(task=name, state=State.RUNNING)

    page = admin_client.get(task_url(name))
    listed = admin_client.get(page.context["jobs_url"])

    assert "Running jobs 1" in text_of(page)
    assert [found.pk for found in listed.context["cl"].result_list] == [job.pk]
    job_page = admin_client.get(url_of("job", "change", job.pk)).content.decode()
    assert task_url(name) in job_page.replace("&amp;", "&").replace("&#x27;", "'")


@pytest.mark.parametrize("query", ["", "?task=", "?task=%20", "?task=%00", "?task=a&tenant=%00"])
def test_what_names_no_task_is_not_found(admin_client: Client, query: str) -> None:
    assert admin_client.get(task_url("x").partition("?")[0] + query).status_code == 404


def test_name_too_long_for_a_control_is_refused(admin_client: Client) -> None:
    url = task_url("x" * 501)

    page = admin_client.get(url)
    said = text_of(admin_client.post(url, {"_limits": "1", "num_slots": "1"}, follow=True))

    assert page.status_code == 200
    assert "from 1 to 500 characters" in said
    assert not TaskControl.objects.exists()


def test_pages_name_the_task_with_a_link_to_its_page(admin_client: Client) -> None:
    job = make_job(make_queue("acme"), task=noop.name, state=State.ERROR)
    figure(ALL, timedelta(minutes=2), started=1, succeeded=1)
    control = TaskControl.objects.create(task=TASK, num_slots=1)
    make_figure(error="")

    pages = {
        "/admin/tenantqueue/": task_url(TASK, hours=1),
        url_of("job", "change", job.pk): task_url(noop.name),
        url_of("taskcontrol", "change", control.pk): task_url(TASK),
    }

    for page, link in pages.items():
        assert link in admin_client.get(page).content.decode().replace("&amp;", "&"), page
