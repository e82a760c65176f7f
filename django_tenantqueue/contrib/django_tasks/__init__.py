"""A backend of Django's task framework: `TASKS = {"default": {"BACKEND": "…"}}`."""

from __future__ import annotations

from .backend import TenantQueueBackend, TenantQueueTask

__all__ = ["TenantQueueBackend", "TenantQueueTask"]
