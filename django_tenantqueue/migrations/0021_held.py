"""Held jobs, queue by queue: how many each gate holds, and since when."""

from ._base import PostgresMigration
from ._indexes import add_indexes

# What a gate holds, by queue and gate. Jobs that are not held are not in it.
OF_HOT = {"tenantqueue_job_held": "(queue_id, held_by, run_at) WHERE held_by IS NOT NULL"}


class Migration(PostgresMigration):
    atomic = False

    dependencies = [("tenantqueue", "0020_lock_keys")]
    operations = [add_indexes(OF_HOT, {})]
