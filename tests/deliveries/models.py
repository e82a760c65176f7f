"""Deliveries, one for each job that hands over a parcel."""

from django.db import models


class Delivery(models.Model):
    """A parcel on its way."""

    tenant = models.CharField(max_length=200)
    job_id = models.BigIntegerField(unique=True)
    due_at = models.DateTimeField()
    reminded_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.pk}"
