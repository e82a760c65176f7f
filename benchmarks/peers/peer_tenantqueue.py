"""django_tenantqueue with `manage.py runworker` and its default settings.

A peer for a driver that runs other queues on the same server; see ../README.md.
"""

import os
import subprocess
import sys

import common

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantqueue_settings")

import django

django.setup()

import tenantqueue_app.tasks as tasks  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connections  # noqa: E402

from django_tenantqueue.operations.queues import forget_queues  # noqa: E402


class Peer(common.PgPeer):
    """Jobs of one queue without limit; for `cap` and `fair` 100 tenants with three slots each."""

    name = "tenantqueue"
    variants = {"": [], "p2": ["--processes", "2"]}
    table = "tenantqueue_job_hot"
    todo_where = "state = 'ready'"
    done_table = "tenantqueue_job_history"
    done_where = "state = 'success'"
    done_sql = "select count(*) from tenantqueue_job_history where state = 'success'"
    states_sql = "select state, count(*) from tenantqueue_job group by 1"
    pk = ("id", "nextval('tenantqueue_job_id_seq')")
    bulk_api = "enqueue_many"
    has_cap = "a tenant queue per tenant, num_slots=3"

    def __init__(self, variant: str = "") -> None:
        super().__init__(variant)
        settings.DATABASES["default"]["NAME"] = self.db
        connections["default"].settings_dict["NAME"] = self.db

    def install(self, db: str) -> None:
        """Create the schema in database `db`."""
        subprocess.run(
            [sys.executable, "-m", "django", "migrate", "-v0"],
            check=True,
            cwd=common.HERE,
            env={**os.environ, "PYTHONPATH": common.HERE, "BENCH_DJ_DB": db},
        )

    def open(self) -> None:
        """Forget what was known of the last database."""
        forget_queues()

    def close(self) -> None:
        """Close the producer's connection."""
        connections.close_all()

    def enqueue(self, job: str, *args: object) -> None:
        """Enqueue one job in autocommit mode."""
        getattr(tasks, job).delay(*args)

    def bulk(self, job: str, argslist: list[tuple[object, ...]]) -> None:
        """Enqueue many jobs."""
        getattr(tasks, job).enqueue_many([tuple(args) for args in argslist])

    def argv(self) -> list[str]:
        """Return the worker's command line."""
        return [sys.executable, "-m", "django", "runworker", *self.opt]

    def env(self) -> dict[str, str]:
        """Return what the worker's environment needs."""
        return {"BENCH_DJ_DB": self.db, "DJANGO_SETTINGS_MODULE": "tenantqueue_settings"}

    def fill_tenants(self, order: str) -> None:
        """Insert a job for every (n, tenant, k) of the query `order`."""
        self.q(
            "insert into tenantqueue_tenantqueue (tenant, name, num_slots, created_at) "
            "select 't' || g, 'default', 3, now() from generate_series(0, 99) g"
        )
        self.q(
            "insert into tenantqueue_job_hot (queue_id, lane, priority, is_async, task, "
            "source_type, source_method, args) "
            "select q.id, 240, 240, true, m.name, 'task', m.name, "
            "jsonb_build_object('args', jsonb_build_array(o.t)) "
            f"from ({order}) o(n, t, k) "
            "join tenantqueue_tenantqueue q on q.tenant = 't' || o.t and q.name = 'default' "
            "cross join (select 'tenantqueue_app.tasks.tenant' as name) m order by o.n"
        )
