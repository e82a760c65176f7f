import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Airline",
            fields=[
                ("code", models.CharField(max_length=2, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                (
                    "plan",
                    models.CharField(
                        choices=[("free", "Free"), ("team", "Team"), ("enterprise", "Enterprise")],
                        default="free",
                        max_length=10,
                    ),
                ),
                ("flight_count", models.IntegerField(default=0, editable=False)),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Airport",
            fields=[
                ("code", models.CharField(max_length=3, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("latitude", models.FloatField()),
                ("longitude", models.FloatField()),
                ("altitude", models.IntegerField(help_text="In feet.")),
            ],
            options={
                "ordering": ("code",),
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                (
                    "job_count",
                    models.IntegerField(help_text="How many reports the seeder has requested."),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Plane",
            fields=[
                ("tail_number", models.CharField(max_length=6, primary_key=True, serialize=False)),
                ("year", models.SmallIntegerField(help_text="Year of manufacture.", null=True)),
                ("manufacturer", models.CharField(max_length=60)),
                ("model", models.CharField(max_length=40)),
                ("engines", models.SmallIntegerField()),
                ("seats", models.SmallIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="ReportRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("job_id", models.BigIntegerField(db_index=True)),
                ("attempt", models.SmallIntegerField()),
                ("airline", models.CharField(max_length=200)),
                ("queue", models.CharField(max_length=100)),
                ("report", models.TextField()),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("succeeded", models.BooleanField(null=True)),
                ("error", models.TextField(blank=True)),
            ],
            options={
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="Weather",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("origin", models.CharField(max_length=3)),
                ("hour", models.DateTimeField()),
                ("temperature", models.FloatField(help_text="In °F.", null=True)),
                ("humidity", models.FloatField(null=True)),
                ("wind_speed", models.FloatField(help_text="In mph.", null=True)),
                ("precipitation", models.FloatField(help_text="In inches.", null=True)),
                ("visibility", models.FloatField(help_text="In miles.", null=True)),
            ],
            options={
                "verbose_name_plural": "weather",
                "indexes": [models.Index(fields=["origin", "hour"], name="flights_weather_hour")],
            },
        ),
        migrations.CreateModel(
            name="BatchJob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("airline", models.CharField(max_length=200)),
                ("queue", models.CharField(max_length=100)),
                ("state", models.CharField(help_text="How the job must end.", max_length=10)),
                (
                    "runs",
                    models.SmallIntegerField(help_text="How many runs it must have had by then."),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="jobs",
                        to="flights.batch",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("batch", "job_id"), name="flights_batchjob_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Flight",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.SmallIntegerField()),
                ("tail_number", models.CharField(max_length=6, null=True)),
                ("origin", models.CharField(max_length=3)),
                ("destination", models.CharField(max_length=3)),
                ("day", models.DateField()),
                ("hour", models.DateTimeField(help_text="Full hour of the scheduled departure.")),
                ("scheduled", models.DateTimeField(help_text="Scheduled departure.")),
                ("departure_delay", models.SmallIntegerField(help_text="In minutes.", null=True)),
                ("arrival_delay", models.SmallIntegerField(help_text="In minutes.", null=True)),
                ("air_time", models.SmallIntegerField(help_text="In minutes.", null=True)),
                ("distance", models.SmallIntegerField(help_text="In miles.")),
                (
                    "airline",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="flights",
                        to="flights.airline",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["airline", "day"], name="flights_flight_day"),
                    models.Index(
                        fields=["airline", "origin", "destination"], name="flights_flight_route"
                    ),
                    models.Index(fields=["destination"], name="flights_flight_destination"),
                    models.Index(fields=["tail_number", "scheduled"], name="flights_flight_plane"),
                ],
            },
        ),
    ]
