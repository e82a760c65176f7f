"""Creates alert rules.

The verbs of django_tenantqueue.control take their rows: pause, resume, tune, delete.
"""

from __future__ import annotations

from ...coroutines import twin
from .services import make_alert_rule

amake_alert_rule = twin(make_alert_rule)

__all__ = ["amake_alert_rule", "make_alert_rule"]
