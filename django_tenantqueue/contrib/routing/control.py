"""Creates routings.

The verbs of django_tenantqueue.control take their rows: tune, delete.
"""

from __future__ import annotations

from ...coroutines import twin
from .services import make_routing

amake_routing = twin(make_routing)

__all__ = ["amake_routing", "make_routing"]
