"""Errors of the delivery of alerts."""

from __future__ import annotations

from ...exceptions import TenantQueueError


class DeliveryFailed(TenantQueueError):
    """A recipient of alerts rejected a message. The job is retried."""
