"""A shop whose background work is done by Celery. It knows nothing of django_tenantqueue."""

from .celery import app as celery_app

__all__ = ["celery_app"]
