"""What is told when the row that an operator names is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Model

from django_tenantqueue.models import ConcurrentJobMonitor, Session, TaskControl, TenantQueue
from django_tenantqueue.operations.control import tune_queue
from django_tenantqueue.operations.monitor_control import (
    cancel_monitor,
    retry_failed_details,
    tune_monitor,
)
from django_tenantqueue.operations.session_control import tune_session
from django_tenantqueue.operations.task_control import tune_control

pytestmark = pytest.mark.django_db

CALLS = [
    (tune_queue, TenantQueue, {"num_slots": 3}, "tenant queue"),
    (tune_session, Session, {"paused": True}, "session"),
    (tune_control, TaskControl, {"paused": True}, "task control"),
    (tune_monitor, ConcurrentJobMonitor, {"parallel": 3}, "monitor"),
    (retry_failed_details, ConcurrentJobMonitor, {}, "monitor"),
]


@pytest.mark.parametrize(
    ("call", "model", "changes", "name"), CALLS, ids=[call[0].__name__ for call in CALLS]
)
def test_error_names_the_row_when_it_is_not_there(
    call: Callable[..., Any], model: type[Model], changes: dict[str, Any], name: str
):
    with pytest.raises(model.DoesNotExist, match=f"there is no {name} 12345$"):
        call(12345, **changes)


def test_nothing_is_cancelled_when_the_monitor_is_not_there():
    assert not cancel_monitor(12345)
