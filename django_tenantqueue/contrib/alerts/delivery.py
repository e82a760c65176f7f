"""The task that delivers messages: one job for each message and channel, with retries."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from ...conf import get_settings, settings_of
from ...exceptions import Permanent
from ...models import Job
from ...operations.queues import make_queue
from ...states import Priority
from ...tasks import InternalTask
from .channels import CHANNELS
from .messages import Message, make_message, read_message, stored
from .models import AlertRule
from .settings import AlertSettings
from .watches import TASK_PREFIX

NUM_SLOTS = 5
"""Messages of a tenant that are sent at once, until an operator tunes the queue."""


def _deliver(rule_id: int, channel: str, kept: dict[str, Any]) -> None:
    """Send a message to the present recipients of its rule.

    `kept`: see stored(). Nothing is sent when all of its alerts were deleted.
    """
    rule = AlertRule.objects.using(get_settings().database).filter(pk=rule_id).first()
    if rule is None:
        raise Permanent(f"alert rule {rule_id} was deleted")
    message = read_message(rule, kept)
    if message["alerts"] or not kept["alerts"]:
        CHANNELS[channel](rule, message)


deliver = InternalTask(
    _deliver,
    name=f"{TASK_PREFIX}deliver",
    max_attempts=50,  # 40 hours with the default backoff
    timeout=60.0,
    priority=Priority.ADMIN_HIGH,
)


def enqueue_message(using: str, rule: AlertRule, message: Message) -> list[Job]:
    """Enqueue the deliveries of a message in the caller's transaction, one for each channel."""
    queue = settings_of(AlertSettings).queue
    if rule.channels:
        make_queue(using, rule.tenant or "", queue, num_slots=NUM_SLOTS)
    using_queue = {"tenant": rule.tenant or "", "queue": queue}
    return [
        deliver.enqueue(using_queue, rule_id=rule.pk, channel=channel, kept=stored(message))
        for channel in rule.channels
    ]


def enqueue_test(using: str, rule: AlertRule) -> list[Job]:
    """Enqueue a test message on each channel of a rule, and return the jobs."""
    return enqueue_message(using, rule, make_message(rule, now=timezone.now(), test=True))
