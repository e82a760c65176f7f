"""Pages of the admin in Japanese."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse
from django.utils import translation

from django_tenantqueue.models import ConcurrentJobMonitor, Session, TaskControl, UserLimit
from django_tenantqueue.queries.figures import ALL, Counts, add_figures
from django_tenantqueue.states import State
from django_tenantqueue.status.figures import duration_text, rough_text
from tests.factories import make_duty, make_job, make_queue, make_worker
from tests.test_translations import APPS, PLACEHOLDER, catalogue, read_catalogue

from .conftest import url_of

pytestmark = pytest.mark.django_db
LISTS = (
    *("tenantqueue", "job", "session", "userlimit", "concurrentjobmonitor"),
    *("worker", "taskcontrol", "duty", "change"),
)
LONGEST = 20
"""Characters up to which a text may stand in a page by chance."""
KANA = re.compile(r"[\u3040-\u30ff]{2}")


def english_parts() -> set[str]:
    """Return the texts of the catalogue that are longer than LONGEST, cut at placeholders."""
    messages = [m for app in APPS for m in read_catalogue(catalogue(app, "ja"))]
    texts = [text for message in messages for text in (message.id, message.plural)]
    parts = [part.strip() for text in texts for part in PLACEHOLDER.split(text)]
    return {part for part in parts if len(part) > LONGEST and part != "python manage.py runworker"}


def parts_in(client, address, language, parts):
    with translation.override(language):
        response = client.get(address)
    assert response.status_code == 200, address
    content = html.unescape(response.content.decode())
    assert (KANA.search(content) is not None) == (language == "ja")
    return {part for part in parts if part in content}


def fill() -> list[str]:
    """Make rows with troubles; return the addresses of the pages."""
    queue = make_queue("acme", "reports", num_slots=1)
    paused = make_queue("acme", "mails", paused=True)
    waiting = make_job(paused)
    failed = make_job(
        queue,
        state=State.ERROR,
        final=True,
        attempt=1,
        errors=[{"class": "ValueError", "message": "bad", "attempt": 1}],
    )
    worker = make_worker()
    duty = make_duty(error="broken")
    control = TaskControl.objects.create(task="app.tasks.send", paused=True)
    monitor = ConcurrentJobMonitor.objects.start(
        "rollout", tenant="acme", queue="reports", parallel=2
    )
    add_figures("default", {(ALL, "app.tasks.report", ""): Counts(succeeded=3, failed=1)})
    kinds = Session.Kind
    session = Session.objects.create(kind=kinds.SERIAL, tenant="acme", key="s", gate_key="acme/s")
    cap = UserLimit.objects.create(kind=kinds.LIMIT_USER, tenant="acme", key="u", gate_key="acme/u")
    rows = (queue, waiting, failed, worker, duty, control, monitor, session, cap)
    return [
        reverse("admin:app_list", args=["tenantqueue"]),
        reverse("admin:tenantqueue_failures"),
        *(url_of(model, "changelist") for model in LISTS),
        *(url_of(row._meta.model_name, "change", row.pk) for row in rows),
        url_of("tenantqueue", "history", queue.pk),
    ]


def test_no_text_of_ours_is_english_when_the_language_is_japanese(admin_client):
    parts = english_parts()
    seen = set()
    for address in fill():
        english = parts_in(admin_client, address, "en", parts)
        seen |= english
        assert not parts_in(admin_client, address, "ja", english), address
    assert len(seen) > 60


def test_empty_lists_are_japanese_when_the_language_is_japanese(admin_client):
    parts = english_parts()
    for model in LISTS:
        english = parts_in(admin_client, url_of(model, "changelist"), "en", parts)
        assert english, model
        assert not parts_in(admin_client, url_of(model, "changelist"), "ja", english), model


@pytest.mark.parametrize(
    ("seconds", "text", "rough"),
    [
        (0.012, "12 ミリ秒", "0 秒"),
        (3, "3 秒", "3 秒"),
        (184, "3 分 4 秒", "3 分"),
        (7500, "2 時間 5 分", "2 時間"),
        (183_600, "2 日 3 時間", "2 日"),
    ],
)
def test_durations_have_units_of_the_language(seconds, text, rough):
    with translation.override("ja"):
        assert (duration_text(seconds), rough_text(seconds)) == (text, rough)
