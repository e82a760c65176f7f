"""How the delivery of an alert fails."""

from __future__ import annotations

from ...exceptions import TenantQueueError


class DeliveryFailed(TenantQueueError):
    """A receiver of alerts did not take a message. Its job is retried."""
