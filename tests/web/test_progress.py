"""The template tags that show the progress of jobs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.core.exceptions import ImproperlyConfigured
from django.template import Context, Template
from django.test import override_settings
from django.utils.html import escape

from django_tenantqueue.link_tokens import read_job_token
from django_tenantqueue.states import State
from tests.factories import make_job

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]
HOSTILE = "\"'><script>alert(1)</script>"


def render(tags: str, **context: Any) -> str:
    return Template("{% load tenantqueue %}" + tags).render(Context(context))


def text_of(html: str, part: str) -> str:
    found = re.search(rf'class="tenantqueue-{part}"[^>]*>(.*?)</span>', html, re.S)
    assert found
    return found[1]


def test_state_progress_and_message_are_there_without_a_script() -> None:
    job = make_job(
        state=State.RUNNING, progress_done=16, progress_total=40, progress_message="row 16"
    )

    html = render("{% job_progress job title='Report' %}", job=job)

    assert text_of(html, "title") == "Report"
    assert text_of(html, "state") == "running"
    assert text_of(html, "message") == "row 16"
    assert text_of(html, "percent") == "40 %"
    assert 'value="40"' in html
    assert "<noscript><a href" in html


def test_bar_can_be_read_aloud_when_a_job_runs() -> None:
    job = make_job(state=State.RUNNING, progress_done=1, progress_total=4, progress_message="a row")

    html = render("{% job_progress job title='Report' %}", job=job)

    bar = re.search(r"<progress.*?>", html)[0]
    for attribute in (
        'role="progressbar"',
        'aria-label="Report"',
        'aria-valuenow="25"',
        'aria-valuemin="0"',
        'aria-valuemax="100"',
        'aria-valuetext="25 %, a row"',
    ):
        assert attribute in bar
    assert 'aria-live="polite"' in html


def test_bar_has_no_value_when_a_running_job_reports_no_total() -> None:
    html = render("{% job_progress job %}", job=make_job(state=State.RUNNING))

    assert not re.search(r"<progress[^>]*\b(value|aria-valuenow)=", html)


@pytest.mark.parametrize(
    ("columns", "label", "value"),
    [
        ({"state": State.READY}, "waiting", 0),
        ({"state": State.SCHEDULED}, "scheduled", 0),
        ({"state": State.SCHEDULED, "attempt": 1}, "will be retried", 0),
        ({"state": State.QUEUED}, "starting", 0),
        ({"state": State.SUCCESS}, "done", 100),
        ({"state": State.ERROR, "progress_done": 3, "progress_total": 4}, "failed", 75),
        ({"state": State.CANCELLED}, "cancelled", 0),
    ],
)
def test_label_and_bar_fit_the_state(columns: dict[str, Any], label: str, value: int) -> None:
    html = render("{% job_progress job %}", job=make_job(**columns))

    assert text_of(html, "state") == label
    assert f' value="{value}"' in html


def test_token_names_the_job_while_it_has_not_ended() -> None:
    job = make_job()

    html = render("{% job_progress job %}", job=job)

    token = re.search(r'data-token="(.*?)"', html)[1]
    assert read_job_token(token) == job.pk
    assert 'data-url="/jobs/status/"' in html


def test_nothing_is_followed_when_the_job_has_ended() -> None:
    html = render("{% job_progress job reload=True %}", job=make_job(state=State.SUCCESS))

    for name in ("data-token", "data-url", "data-reload", "noscript"):
        assert name not in html


def test_nothing_is_shown_when_there_is_no_job() -> None:
    assert render("{% job_progress job %}{% jobs_progress jobs %}", job=None, jobs=[]).strip() == ""


def test_title_is_made_of_the_name_when_none_is_given() -> None:
    html = render("{% job_progress job %}", job=make_job(task="app.tasks.build_report"))

    assert text_of(html, "title") == "Build report"


def test_hostile_texts_are_escaped() -> None:
    job = make_job(
        state=State.RUNNING,
        task=f"app.{HOSTILE}",
        progress_message=HOSTILE,
        progress_done=1,
        progress_total=2,
    )
    failed = make_job(state=State.ERROR, errors=[{"message": HOSTILE}])

    html = render(
        "{% job_progress job title=title %}{% jobs_progress jobs errors=True %}",
        job=job,
        title=HOSTILE,
        jobs=[job, failed],
    )

    assert "<script>alert" not in html
    assert html.count(escape(HOSTILE)) >= 5


def test_message_of_an_error_is_shown_only_when_it_is_asked_for() -> None:
    job = make_job(state=State.ERROR, errors=[{"message": "disk full"}], progress_message="row 3")

    assert text_of(render("{% job_progress job %}", job=job), "message") == ""
    html = render("{% job_progress job errors=True %}", job=job)
    assert text_of(html, "message") == "Something went wrong."
    with override_settings(TENANTQUEUE={"STATUS_ERROR": "{message}"}):
        html = render("{% job_progress job errors=True %}", job=job)
    assert text_of(html, "message") == "disk full"


def test_script_and_style_are_loaded_once_when_a_page_shows_many_jobs() -> None:
    jobs = [make_job(), make_job()]

    html = render(
        "{% for job in jobs %}{% job_progress job %}{% endfor %}{% jobs_progress jobs %}", jobs=jobs
    )

    assert html.count("<tenantqueue-progress") == 4
    for name in ("progress.js", "progress.css"):
        assert html.count(f"/static/django_tenantqueue/{name}") == 1
        assert finders.find(f"django_tenantqueue/{name}")


def test_no_query_is_made_when_many_jobs_are_shown(django_assert_num_queries: Any) -> None:
    jobs = [make_job(state=state) for state in State]

    with django_assert_num_queries(0):
        render("{% jobs_progress jobs %}", jobs=jobs)


@pytest.mark.urls("tests.urls")
def test_missing_urls_are_told_with_the_remedy() -> None:
    with pytest.raises(ImproperlyConfigured, match=r'include\("django_tenantqueue.web.urls"\)'):
        render("{% job_progress job %}", job=make_job())
