"""The list of workers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from django_tenantqueue.models import Worker

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/worker/"


def make_worker(**columns: Any) -> Worker:
    """Insert the row of a worker process."""
    now = timezone.now()
    values: dict[str, Any] = {
        "name": "web-1:100",
        "host": "web-1",
        "pid": 100,
        "supervisor_pid": 99,
        "version": "0.1.0",
        "started_at": now - timedelta(hours=3, minutes=5),
        "heartbeat_at": now,
        "threads": 4,
        "async_slots": 100,
        **columns,
    }
    return Worker.objects.create(**values)


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "working"),
        ({"sleeping_until": timezone.now() + timedelta(days=1)}, "idle"),
        ({"draining": True}, "draining"),
        ({"heartbeat_at": timezone.now() - timedelta(minutes=5)}, "silent"),
    ],
)
def test_list_tells_how_a_worker_is(
    admin_client: Client, columns: dict[str, Any], state: str
) -> None:
    make_worker(**columns)

    text = text_of(admin_client.get(LIST))

    assert f" {state} " in text
    assert "3 h 5 min" in text
    assert "all queues" in text
    assert "4 + 100 async" in text


def test_list_tells_what_a_worker_takes(admin_client: Client) -> None:
    make_worker(queues=["reports"], exclude_queues=["slow"], tenants=["acme", "zeta"])

    text = text_of(admin_client.get(LIST))

    assert "queues: reports; but not: slow; tenants: acme, zeta" in text


def test_drain_sets_only_that_column(admin_client: Client) -> None:
    worker, other = make_worker(), make_worker(name="web-2:100", draining=True)
    data = {"action": "drain_selected", "_selected_action": [worker.pk, other.pk], "index": "0"}

    text = text_of(admin_client.post(LIST, data, follow=True))

    assert "1 worker drains. 1 did so already" in text
    assert Worker.objects.filter(draining=True).count() == 2
    assert LogEntry.objects.get().get_change_message() == "Changed draining no → yes."


def test_page_of_a_worker_has_nothing_to_save(admin_client: Client) -> None:
    worker = make_worker()

    content = admin_client.get(url_of("worker", "change", worker.pk)).content.decode()

    assert "web-1:100" in content
    assert 'name="_save"' not in content
    assert 'name="draining"' not in content


def test_empty_list_says_what_to_do(admin_client: Client) -> None:
    assert "Start it with python manage.py runworker" in text_of(admin_client.get(LIST))
