"""All tables of the core, the partitioned job table among them.

Django cannot express partitions, so the job table is made by SQL and declared to the migration
state beside it. Nothing here imports package code but the field class, so that it runs the same for
ever.
"""

import datetime
from pathlib import Path

import django.core.serializers.json
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import django_tenantqueue.models.fields

from ._base import PostgresMigration


def read(part: str) -> str:
    """Return the SQL of a file beside this one."""
    return (Path(__file__).parent / f"0001_{part}.sql").read_text()


DROP_FUNCTIONS = """
    DROP TRIGGER tenantqueue_queue_limited ON tenantqueue_tenantqueue;
    DROP FUNCTION tenantqueue_wait_for_claims();
    DROP AGGREGATE tenantqueue_sum_counts (bigint[]);
    DROP FUNCTION tenantqueue_add_counts(bigint[], bigint[]);
    DROP FUNCTION tenantqueue_enqueue_follow_ups(bigint, smallint, smallint, jsonb, text);
    DROP FUNCTION tenantqueue_short_follow_ups(jsonb);
    DROP FUNCTION tenantqueue_error_class(jsonb);
    DROP FUNCTION tenantqueue_add_error(jsonb, jsonb, integer)
"""
DROP_VIEWS = "DROP VIEW tenantqueue_closedtask; DROP VIEW tenantqueue_taskstart"
# Rows that are written again all the time leave room for HOT updates: claims rewrite the rate of a
# limited queue, sleeping and heartbeats the row of a worker, each heartbeat the current minute.
# Keys come and go with their jobs: thresholds as those of the hot leaf.
TUNE_TABLES = """
    ALTER TABLE tenantqueue_queuerate SET (fillfactor = 50);
    ALTER TABLE tenantqueue_worker SET (fillfactor = 50);
    ALTER TABLE tenantqueue_figure SET (fillfactor = 70);
    ALTER TABLE tenantqueue_uniquekey SET (
        fillfactor = 80, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_threshold = 20000, autovacuum_analyze_scale_factor = 0,
        autovacuum_analyze_threshold = 50000
    )
"""
# Django's class for it would ask every project to install django.contrib.postgres.
CHANGE_IDS = "CREATE INDEX tenantqueue_change_ids ON tenantqueue_change USING gin (object_ids)"


class Migration(PostgresMigration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="TenantQueue",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                (
                    "tenant",
                    models.CharField(
                        blank=True,
                        help_text="Empty: jobs without a tenant.",
                        max_length=200,
                        verbose_name="tenant",
                    ),
                ),
                ("name", models.CharField(default="default", max_length=100, verbose_name="queue")),
                (
                    "num_slots",
                    models.IntegerField(
                        blank=True,
                        db_default=5,
                        default=5,
                        help_text="How many of its jobs may run at once, on all machines. Empty: no limit.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="slots",
                    ),
                ),
                (
                    "weight",
                    models.SmallIntegerField(
                        db_default=1,
                        default=1,
                        help_text="Turns this queue gets for each turn of a queue of weight 1.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                        verbose_name="weight",
                    ),
                ),
                (
                    "max_per_second",
                    models.FloatField(
                        blank=True,
                        help_text="How many jobs may start in a second, on all machines. Empty: no limit.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0001),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="starts per second",
                    ),
                ),
                (
                    "burst",
                    models.IntegerField(
                        blank=True,
                        help_text="How many may start at once after a pause. Empty: those of one second.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="burst",
                    ),
                ),
                (
                    "max_waiting",
                    models.IntegerField(
                        blank=True,
                        help_text="Reject new jobs once this many are ready. Empty: no limit.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(100000000),
                        ],
                        verbose_name="max waiting",
                    ),
                ),
                (
                    "paused",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Start no more of its jobs.",
                        verbose_name="paused",
                    ),
                ),
                (
                    "executor",
                    models.CharField(
                        blank=True,
                        help_text="The executor that runs its jobs, from the setting EXECUTORS. Empty: the workers. Claimed jobs are not affected.",
                        max_length=100,
                        null=True,
                        verbose_name="executor",
                    ),
                ),
                (
                    "retired",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Reject new jobs. Waiting jobs still run.",
                        verbose_name="retired",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
            ],
            options={
                "verbose_name": "tenant queue",
                "verbose_name_plural": "tenant queues",
                "ordering": ("tenant", "name"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "name"), name="tenantqueue_queue_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("num_slots__gte", 0), ("num_slots__lte", 1000000)),
                        name="tenantqueue_queue_num_slots",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 1), ("weight__lte", 1000)),
                        name="tenantqueue_queue_weight",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_per_second__gte", 0.0001), ("max_per_second__lte", 1000000)
                        ),
                        name="tenantqueue_queue_max_per_second",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("burst__gte", 1), ("burst__lte", 1000000)),
                        name="tenantqueue_queue_burst",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_waiting__gte", 0), ("max_waiting__lte", 100000000)
                        ),
                        name="tenantqueue_queue_max_waiting",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("executor", ""), _negated=True),
                        name="tenantqueue_queue_executor",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueRate",
            fields=[
                ("debt", models.FloatField(verbose_name="debt")),
                ("as_of", models.DateTimeField(verbose_name="as of")),
                (
                    "queue",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenantqueue.tenantqueue",
                        verbose_name="queue",
                    ),
                ),
            ],
            options={
                "verbose_name": "queue rate",
                "verbose_name_plural": "queue rates",
            },
        ),
        migrations.CreateModel(
            name="TaskControl",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "task",
                    models.CharField(
                        help_text="The name as its jobs show it, such as “app.tasks.send” or “app.Model.method”.",
                        max_length=500,
                        verbose_name="task",
                    ),
                ),
                (
                    "paused",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Start no more of its jobs, of any tenant.",
                        verbose_name="paused",
                    ),
                ),
                (
                    "num_slots",
                    models.IntegerField(
                        blank=True,
                        help_text="How many of its jobs may run at once, of all tenants together. Empty: any.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="slots",
                    ),
                ),
                (
                    "max_per_second",
                    models.FloatField(
                        blank=True,
                        help_text="How many of its jobs may start in a second, of all tenants. Empty: any.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0001),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="starts per second",
                    ),
                ),
                (
                    "burst",
                    models.IntegerField(
                        blank=True,
                        help_text="How many may start at once after a pause. Empty: those of one second.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="burst",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
            ],
            options={
                "verbose_name": "task control",
                "verbose_name_plural": "task controls",
                "ordering": ("task",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task",), name="tenantqueue_taskcontrol_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("num_slots__isnull", True),
                            models.Q(("num_slots__gte", 0), ("num_slots__lte", 1000000)),
                            _connector="OR",
                        ),
                        name="tenantqueue_taskcontrol_num_slots",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_per_second__gte", 0.0001), ("max_per_second__lte", 1000000)
                        ),
                        name="tenantqueue_taskcontrol_max_per_second",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("burst__gte", 1), ("burst__lte", 1000000)),
                        name="tenantqueue_taskcontrol_burst",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskRate",
            fields=[
                ("debt", models.FloatField(verbose_name="debt")),
                ("as_of", models.DateTimeField(verbose_name="as of")),
                (
                    "control",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenantqueue.taskcontrol",
                        verbose_name="task control",
                    ),
                ),
            ],
            options={
                "verbose_name": "task rate",
                "verbose_name_plural": "task rates",
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("serial", "session"), ("limit_user", "user limit")],
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                ("tenant", models.CharField(blank=True, max_length=200, verbose_name="tenant")),
                ("key", models.CharField(blank=True, max_length=200, verbose_name="key")),
                ("gate_key", models.TextField(editable=False)),
                (
                    "num_slots",
                    models.IntegerField(
                        blank=True,
                        help_text="How many of the user's jobs may run at once. Empty: the tenant's default.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="slots",
                    ),
                ),
                (
                    "paused",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Start no more of its jobs.",
                        verbose_name="paused",
                    ),
                ),
                (
                    "on_wait",
                    models.CharField(
                        blank=True,
                        choices=[("block", "the session waits"), ("skip", "later jobs may start")],
                        db_default="",
                        default="",
                        help_text="Empty: set by the job.",
                        max_length=10,
                        verbose_name="while its first job waits",
                    ),
                ),
                (
                    "on_failure",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("continue", "the session continues"),
                            ("halt", "the session halts"),
                        ],
                        db_default="",
                        default="",
                        help_text="Empty: set by the job.",
                        max_length=10,
                        verbose_name="after a failure",
                    ),
                ),
                (
                    "halted_at",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="halted at"
                    ),
                ),
                (
                    "halted_by",
                    models.BigIntegerField(
                        blank=True, editable=False, null=True, verbose_name="halted by job"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "ordering": ("tenant", "kind", "key"),
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("paused", True), ("halted_at__isnull", False), _connector="OR"
                        ),
                        fields=["id"],
                        name="tenantqueue_session_stopped",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("gate_key", "kind"), name="tenantqueue_session_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("num_slots__isnull", True),
                            models.Q(("num_slots__gte", 0), ("num_slots__lte", 1000000)),
                            _connector="OR",
                        ),
                        name="tenantqueue_session_num_slots",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind", "limit_user"), ("num_slots__isnull", True), _connector="OR"
                        ),
                        name="tenantqueue_session_serial",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind", "serial"),
                            models.Q(("on_failure", ""), ("on_wait", "")),
                            _connector="OR",
                        ),
                        name="tenantqueue_session_user",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UserLimit",
            fields=[],
            options={
                "verbose_name": "user limit",
                "verbose_name_plural": "user limits",
                "proxy": True,
            },
            bases=("tenantqueue.session",),
        ),
        migrations.CreateModel(
            name="ConcurrentJobMonitor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "tenant",
                    models.CharField(
                        blank=True, editable=False, max_length=200, verbose_name="tenant"
                    ),
                ),
                ("name", models.CharField(editable=False, max_length=200, verbose_name="name")),
                (
                    "parallel",
                    models.IntegerField(
                        help_text="How many of its details may be in flight: ready, running or to be retried.",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="parallel",
                    ),
                ),
                (
                    "interval_seconds",
                    models.FloatField(
                        db_default=0.0,
                        default=0.0,
                        help_text="Seconds between batches. 0: start the next detail as soon as one ends.",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(86400),
                        ],
                        verbose_name="interval",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(
                        default=240, help_text="A lower number runs first.", verbose_name="priority"
                    ),
                ),
                (
                    "paused",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Start no more of its details.",
                        verbose_name="paused",
                    ),
                ),
                (
                    "stop_after_failures",
                    models.IntegerField(
                        blank=True,
                        help_text="Stop starting details after this many have failed. Empty: never.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                        verbose_name="stop after failures",
                    ),
                ),
                (
                    "keep_open",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="It ends only after it is closed: more details may be added.",
                        verbose_name="open",
                    ),
                ),
                (
                    "cancelled_at",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="cancelled at"
                    ),
                ),
                (
                    "session_key",
                    models.TextField(blank=True, editable=False, null=True, verbose_name="session"),
                ),
                ("anchor_id", models.BigIntegerField(editable=False, verbose_name="anchor")),
                (
                    "created_by",
                    models.TextField(
                        blank=True, editable=False, null=True, verbose_name="created by"
                    ),
                ),
                ("created_at", models.DateTimeField(editable=False, verbose_name="created at")),
            ],
            options={
                "verbose_name": "monitor",
                "verbose_name_plural": "monitors",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="tenantqueue_monitor_tenant")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("anchor_id",), name="tenantqueue_monitor_anchor"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("parallel__gte", 0), ("parallel__lte", 1000000)),
                        name="tenantqueue_monitor_parallel",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("interval_seconds__gte", 0), ("interval_seconds__lte", 86400)
                        ),
                        name="tenantqueue_monitor_interval",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("stop_after_failures__isnull", True),
                            ("stop_after_failures__gte", 1),
                            _connector="OR",
                        ),
                        name="tenantqueue_monitor_failures",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MonitorAddition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "monitor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="tenantqueue.concurrentjobmonitor",
                    ),
                ),
                ("details", models.IntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="MonitorPace",
            fields=[
                (
                    "monitor",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenantqueue.concurrentjobmonitor",
                    ),
                ),
                ("fed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="UniqueKey",
            fields=[
                (
                    "key",
                    django_tenantqueue.models.fields.KeyField(
                        db_collation="C", primary_key=True, serialize=False, verbose_name="key"
                    ),
                ),
                ("job_id", models.BigIntegerField(verbose_name="job")),
                (
                    "prior_id",
                    models.BigIntegerField(
                        editable=False,
                        help_text="The job that held the key before.",
                        null=True,
                    ),
                ),
                ("mode", models.TextField(verbose_name="uniqueness")),
                ("expires_at", models.DateTimeField(null=True, verbose_name="expires at")),
            ],
            options={
                "verbose_name": "unique key",
                "verbose_name_plural": "unique keys",
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="tenantqueue_uniquekey_due",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "mode__in",
                                (
                                    "until_executing",
                                    "until_executed",
                                    "until_expired",
                                    "until_and_while_executing",
                                ),
                            )
                        ),
                        name="tenantqueue_uniquekey_mode",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("mode", "until_expired"), _negated=True),
                            ("expires_at__isnull", False),
                            _connector="OR",
                        ),
                        name="tenantqueue_uniquekey_expires",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=200, verbose_name="name")),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("supervisor_pid", models.IntegerField(verbose_name="supervisor's process id")),
                ("version", models.CharField(max_length=50, verbose_name="version")),
                ("started_at", models.DateTimeField(verbose_name="started at")),
                ("heartbeat_at", models.DateTimeField(verbose_name="last heartbeat")),
                (
                    "queues",
                    django_tenantqueue.models.fields.TextListField(
                        default=list, verbose_name="queues"
                    ),
                ),
                (
                    "exclude_queues",
                    django_tenantqueue.models.fields.TextListField(
                        default=list, verbose_name="excluded queues"
                    ),
                ),
                (
                    "tenants",
                    django_tenantqueue.models.fields.TextListField(
                        default=list, verbose_name="tenants"
                    ),
                ),
                ("threads", models.IntegerField(verbose_name="threads")),
                ("async_slots", models.IntegerField(verbose_name="coroutine slots")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("worker", "worker"),
                            ("dispatcher", "dispatcher"),
                            ("runner", "process of an executor"),
                        ],
                        db_default="worker",
                        default="worker",
                        max_length=10,
                        verbose_name="role",
                    ),
                ),
                (
                    "executor",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The executor to which it sends jobs, or to which it belongs. Empty: none.",
                        max_length=100,
                        verbose_name="executor",
                    ),
                ),
                (
                    "draining",
                    models.BooleanField(
                        default=False,
                        help_text="Finishes running jobs and claims no more.",
                        verbose_name="draining",
                    ),
                ),
                (
                    "stopping",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Drains, and returns jobs still running after its shutdown timeout.",
                        verbose_name="stopping",
                    ),
                ),
                (
                    "leased",
                    models.BooleanField(
                        default=False,
                        help_text="An advisory lock shows whether it is alive.",
                        verbose_name="leased",
                    ),
                ),
                (
                    "sleeping_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="sleeping until"),
                ),
                (
                    "jobs_running",
                    models.IntegerField(db_default=0, default=0, verbose_name="running"),
                ),
                ("rss_bytes", models.BigIntegerField(blank=True, null=True, verbose_name="memory")),
                (
                    "claims_per_second",
                    models.FloatField(db_default=0, default=0, verbose_name="claims per second"),
                ),
                (
                    "jobs_per_second",
                    models.FloatField(db_default=0, default=0, verbose_name="jobs per second"),
                ),
                (
                    "clock_ahead_seconds",
                    models.FloatField(
                        db_default=0,
                        default=0,
                        verbose_name="clock ahead of the server's, in seconds",
                    ),
                ),
                (
                    "last_error",
                    models.TextField(
                        blank=True, db_default="", default="", verbose_name="last error"
                    ),
                ),
                (
                    "last_error_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="last error at"),
                ),
                (
                    "unknown_tasks",
                    django_tenantqueue.models.fields.TextListField(
                        blank=True,
                        help_text="Tasks of jobs that its code does not have. It leaves them to other workers.",
                        null=True,
                        verbose_name="unknown tasks",
                    ),
                ),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "ordering": ("host", "id"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("sleeping_until__isnull", False)),
                        fields=["sleeping_until"],
                        name="tenantqueue_worker_sleeping",
                    ),
                    models.Index(
                        condition=models.Q(("unknown_tasks__isnull", False)),
                        fields=["id"],
                        name="tenantqueue_worker_unknown",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Duty",
            fields=[
                (
                    "name",
                    models.CharField(
                        max_length=50, primary_key=True, serialize=False, verbose_name="name"
                    ),
                ),
                ("worker", models.CharField(max_length=200, verbose_name="worker")),
                ("ran_at", models.DateTimeField(verbose_name="last run")),
                ("duration_seconds", models.FloatField(verbose_name="duration")),
                ("outcome", models.TextField(blank=True, default="", verbose_name="last result")),
                ("acted_at", models.DateTimeField(null=True, verbose_name="last change")),
                ("runs", models.BigIntegerField(default=0, verbose_name="runs")),
                ("error", models.TextField(blank=True, default="", verbose_name="error")),
            ],
            options={
                "verbose_name": "maintenance task",
                "verbose_name_plural": "maintenance tasks",
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "made_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="when",
                    ),
                ),
                (
                    "actor",
                    models.TextField(blank=True, db_default="", default="", verbose_name="who"),
                ),
                (
                    "source",
                    models.TextField(
                        choices=[
                            ("admin", "admin"),
                            ("command", "command"),
                            ("api", "API"),
                            ("code", "code"),
                            ("worker", "worker"),
                        ],
                        verbose_name="from",
                    ),
                ),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("add", "added"),
                            ("tune", "tuned"),
                            ("pause", "paused"),
                            ("resume", "resumed"),
                            ("halt", "halted"),
                            ("retire", "retired"),
                            ("reopen", "reopened"),
                            ("delete", "deleted"),
                            ("drain", "asked to drain"),
                            ("stop", "asked to stop"),
                            ("cancel", "cancelled"),
                            ("retry", "retried"),
                            ("enqueue_again", "enqueued again"),
                            ("run_now", "made due now"),
                            ("set_priority", "priority changed"),
                            ("set_run_at", "time changed"),
                            ("move", "moved"),
                            ("enable", "enabled"),
                            ("disable", "disabled"),
                            ("relane", "PRIORITY_SCOPE applied"),
                            ("revoke", "revoked"),
                            ("erase", "tenant erased"),
                            ("die", "died"),
                        ],
                        verbose_name="action",
                    ),
                ),
                ("object_kind", models.TextField(verbose_name="kind")),
                (
                    "object_ids",
                    django_tenantqueue.models.fields.NumberListField(
                        default=list, verbose_name="ids"
                    ),
                ),
                ("object_count", models.BigIntegerField(default=1, verbose_name="objects")),
                (
                    "object_label",
                    models.TextField(blank=True, db_default="", default="", verbose_name="object"),
                ),
                (
                    "tenant",
                    models.TextField(blank=True, db_default="", default="", verbose_name="tenant"),
                ),
                (
                    "before",
                    models.JSONField(
                        default=dict,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                        verbose_name="before",
                    ),
                ),
                (
                    "after",
                    models.JSONField(
                        default=dict,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                        verbose_name="after",
                    ),
                ),
            ],
            options={
                "verbose_name": "change",
                "verbose_name_plural": "changes",
                "ordering": ("-id",),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["actor", "id"], name="tenantqueue_change_actor"),
                    models.Index(fields=["source", "id"], name="tenantqueue_change_source"),
                    models.Index(fields=["action", "id"], name="tenantqueue_change_action"),
                    models.Index(fields=["object_kind", "id"], name="tenantqueue_change_kind"),
                    models.Index(
                        fields=["object_label", "object_kind", "id"],
                        name="tenantqueue_change_label",
                    ),
                    models.Index(fields=["tenant", "id"], name="tenantqueue_change_tenant"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("object_count__gte", 1)),
                        name="tenantqueue_change_object_count",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Figure",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "queue_id",
                        "at",
                        "task",
                        "error",
                        "minutes",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("queue_id", models.IntegerField(verbose_name="queue")),
                ("at", models.DateTimeField(verbose_name="from")),
                ("task", models.TextField(verbose_name="task")),
                ("error", models.TextField(verbose_name="error")),
                ("minutes", models.SmallIntegerField(verbose_name="minutes")),
                ("started", models.BigIntegerField(verbose_name="started")),
                ("succeeded", models.BigIntegerField(verbose_name="succeeded")),
                ("failed", models.BigIntegerField(verbose_name="failed")),
                ("retried", models.BigIntegerField(verbose_name="retried")),
                ("cancelled", models.BigIntegerField(verbose_name="cancelled")),
                ("wait_seconds", models.FloatField(verbose_name="wait")),
                ("run_seconds", models.FloatField(verbose_name="run time")),
                ("waits", django_tenantqueue.models.fields.NumberListField(verbose_name="waits")),
                (
                    "runs",
                    django_tenantqueue.models.fields.NumberListField(verbose_name="run times"),
                ),
                ("last_job_id", models.BigIntegerField(null=True, verbose_name="last job")),
            ],
            options={
                "verbose_name": "figure",
                "verbose_name_plural": "figures",
                "indexes": [
                    models.Index(
                        models.F("minutes"), models.F("at"), name="tenantqueue_figure_age"
                    ),
                    models.Index(
                        models.F("queue_id"),
                        models.F("at"),
                        condition=models.Q(("error", ""), _negated=True),
                        name="tenantqueue_figure_errors",
                    ),
                    models.Index(
                        models.F("task"),
                        models.F("error"),
                        models.F("at"),
                        condition=models.Q(("error", ""), _negated=True),
                        name="tenantqueue_figure_groups",
                    ),
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(read("functions"), DROP_FUNCTIONS),
                migrations.RunSQL(read("job_table"), "DROP TABLE tenantqueue_job"),
                migrations.RunSQL(read("job_indexes"), migrations.RunSQL.noop),
                migrations.RunSQL(read("task_views"), DROP_VIEWS),
                migrations.RunSQL(TUNE_TABLES, migrations.RunSQL.noop),
                migrations.RunSQL(CHANGE_IDS, migrations.RunSQL.noop),
            ],
            state_operations=[
                migrations.CreateModel(
                    name="Job",
                    fields=[
                        ("id", models.BigAutoField(primary_key=True, serialize=False)),
                        (
                            "queue",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="jobs",
                                to="tenantqueue.tenantqueue",
                                verbose_name="queue",
                            ),
                        ),
                        (
                            "lane",
                            models.SmallIntegerField(
                                default=0,
                                editable=False,
                                help_text="Lowest first, over all tenants: the priority, or 0 for all jobs.",
                            ),
                        ),
                        (
                            "priority",
                            models.SmallIntegerField(
                                default=240,
                                help_text="A lower number runs first.",
                                verbose_name="priority",
                            ),
                        ),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("scheduled", "scheduled"),
                                    ("held", "held"),
                                    ("ready", "ready"),
                                    ("queued", "queued"),
                                    ("running", "running"),
                                    ("success", "success"),
                                    ("error", "error"),
                                    ("cancelled", "cancelled"),
                                ],
                                max_length=10,
                                verbose_name="state",
                            ),
                        ),
                        ("final", models.BooleanField(default=False, editable=False)),
                        ("is_async", models.BooleanField(default=False, verbose_name="coroutine")),
                        ("task", models.TextField(verbose_name="task")),
                        ("source_type", models.TextField(verbose_name="source type")),
                        ("source_id", models.TextField(default="", verbose_name="source id")),
                        ("source_method", models.TextField(verbose_name="source method")),
                        ("args", models.JSONField(default=dict, verbose_name="arguments")),
                        ("run_at", models.DateTimeField(verbose_name="run at")),
                        ("created_at", models.DateTimeField(verbose_name="created at")),
                        ("queued_at", models.DateTimeField(null=True, verbose_name="queued at")),
                        ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                        (
                            "finished_at",
                            models.DateTimeField(null=True, verbose_name="finished at"),
                        ),
                        ("expires_at", models.DateTimeField(null=True, verbose_name="expires at")),
                        (
                            "cancel_requested_at",
                            models.DateTimeField(null=True, verbose_name="cancel requested at"),
                        ),
                        ("attempt", models.SmallIntegerField(default=0, verbose_name="attempt")),
                        (
                            "max_attempts",
                            models.SmallIntegerField(default=1, verbose_name="max attempts"),
                        ),
                        (
                            "crashes",
                            models.SmallIntegerField(
                                default=0,
                                help_text="Worker processes that died while they ran it.",
                                verbose_name="crashes",
                            ),
                        ),
                        ("claim_seq", models.IntegerField(default=0, editable=False)),
                        (
                            "worker",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="tenantqueue.worker",
                                verbose_name="worker",
                            ),
                        ),
                        (
                            "timeout_seconds",
                            models.FloatField(null=True, verbose_name="time limit in seconds"),
                        ),
                        (
                            "hard_timeout_seconds",
                            models.FloatField(null=True, verbose_name="hard time limit in seconds"),
                        ),
                        (
                            "task_at",
                            models.DateTimeField(
                                help_text="When it got a slot of its task, if that is limited.",
                                null=True,
                                verbose_name="released by its task",
                            ),
                        ),
                        ("held_by", models.TextField(null=True, verbose_name="held by")),
                        ("session_key", models.TextField(null=True, verbose_name="session")),
                        ("limit_user", models.TextField(null=True, verbose_name="user limit")),
                        ("monitor_id", models.BigIntegerField(null=True, verbose_name="monitor")),
                        (
                            "exclusive_key",
                            models.TextField(null=True, verbose_name="exclusive key"),
                        ),
                        ("unique_key", models.TextField(null=True, verbose_name="unique key")),
                        ("unique_mode", models.TextField(null=True, verbose_name="uniqueness")),
                        (
                            "session_skip",
                            models.BooleanField(
                                default=False,
                                editable=False,
                                help_text="Later jobs of its session may start while it waits for its time.",
                            ),
                        ),
                        (
                            "session_halt",
                            models.BooleanField(
                                default=False,
                                editable=False,
                                help_text="Its session halts when it fails.",
                            ),
                        ),
                        (
                            "labels",
                            django_tenantqueue.models.fields.TextListField(
                                null=True, verbose_name="labels"
                            ),
                        ),
                        ("created_by", models.TextField(null=True, verbose_name="created by")),
                        ("context", models.JSONField(null=True, verbose_name="context")),
                        ("progress_done", models.FloatField(null=True, verbose_name="progress")),
                        (
                            "progress_total",
                            models.FloatField(null=True, verbose_name="progress total"),
                        ),
                        (
                            "progress_message",
                            models.TextField(null=True, verbose_name="progress message"),
                        ),
                        (
                            "stats",
                            models.JSONField(
                                encoder=django.core.serializers.json.DjangoJSONEncoder,
                                null=True,
                                verbose_name="statistics",
                            ),
                        ),
                        (
                            "result_data",
                            models.JSONField(db_column="result", null=True, verbose_name="result"),
                        ),
                        (
                            "result_ref",
                            models.TextField(null=True, verbose_name="result location"),
                        ),
                        ("errors", models.JSONField(null=True, verbose_name="errors")),
                        (
                            "previous_id",
                            models.BigIntegerField(null=True, verbose_name="after job"),
                        ),
                        ("follow_ups", models.JSONField(null=True, verbose_name="follow-ups")),
                    ],
                    options={
                        "verbose_name": "job",
                        "verbose_name_plural": "jobs",
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("final", True), ("finished_at__isnull", False)),
                                    models.Q(("final", False), ("finished_at__isnull", True)),
                                    _connector="OR",
                                ),
                                name="tenantqueue_job_finished",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(
                                        ("final", True),
                                        ("state__in", ["cancelled", "error", "success"]),
                                    ),
                                    models.Q(
                                        ("final", False),
                                        models.Q(
                                            ("state__in", ["cancelled", "error", "success"]),
                                            _negated=True,
                                        ),
                                    ),
                                    _connector="OR",
                                ),
                                name="tenantqueue_job_final",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("final", True),
                                    models.Q(
                                        ("queued_at__isnull", False),
                                        ("state__in", ["queued", "running"]),
                                        ("worker__isnull", False),
                                    ),
                                    models.Q(
                                        models.Q(
                                            ("state__in", ["queued", "running"]), _negated=True
                                        ),
                                        ("worker__isnull", True),
                                    ),
                                    _connector="OR",
                                ),
                                name="tenantqueue_job_active",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("held_by__isnull", False), ("state", "held")),
                                    models.Q(
                                        models.Q(("state", "held"), _negated=True),
                                        ("held_by__isnull", True),
                                    ),
                                    _connector="OR",
                                ),
                                name="tenantqueue_job_held",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("attempt__gte", 0),
                                    ("attempt__lte", models.F("max_attempts")),
                                    ("max_attempts__gte", 1),
                                ),
                                name="tenantqueue_job_attempts",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    (
                                        "run_at__gte",
                                        datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
                                    ),
                                    (
                                        "run_at__lt",
                                        datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC),
                                    ),
                                    models.Q(
                                        ("expires_at__isnull", True),
                                        models.Q(
                                            (
                                                "expires_at__gte",
                                                datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
                                            ),
                                            (
                                                "expires_at__lt",
                                                datetime.datetime(9000, 1, 1, tzinfo=datetime.UTC),
                                            ),
                                        ),
                                        _connector="OR",
                                    ),
                                ),
                                name="tenantqueue_job_times",
                            ),
                        ],
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="ConcurrentJobMonitorDetail",
            fields=[],
            options={
                "verbose_name": "detail",
                "verbose_name_plural": "details",
                "proxy": True,
            },
            bases=("tenantqueue.job",),
        ),
    ]
