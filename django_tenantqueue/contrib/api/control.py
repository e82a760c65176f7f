"""Makes API tokens.

The verbs of django_tenantqueue.control take their rows: tune, and delete, which revokes them.
"""

from __future__ import annotations

from ...coroutines import twin
from .tokens import make_token

amake_token = twin(make_token)

__all__ = ["amake_token", "make_token"]
