"""Creates retention rules.

The verbs of django_tenantqueue.control take their rows: tune, delete.
"""

from __future__ import annotations

from ...coroutines import twin
from .operations import make_retention_rule

amake_retention_rule = twin(make_retention_rule)

__all__ = ["amake_retention_rule", "make_retention_rule"]
