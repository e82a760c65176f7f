"""The data of reports, and the reports' records of their own runs."""

from django.db import models

from . import plans


class Airline(models.Model):
    """A customer of the product: a tenant."""

    code = models.CharField(max_length=2, primary_key=True)
    name = models.CharField(max_length=100)
    plan = models.CharField(max_length=10, choices=plans.CHOICES, default=plans.FREE.name)
    flight_count = models.IntegerField(default=0, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Airport(models.Model):
    """An airport. A few destinations are not in the data."""

    code = models.CharField(max_length=3, primary_key=True)
    name = models.CharField(max_length=100)
    latitude = models.FloatField()
    longitude = models.FloatField()
    altitude = models.IntegerField(help_text="In feet.")

    class Meta:
        ordering = ("code",)

    def __str__(self) -> str:
        return f"{self.code} {self.name}"


class Plane(models.Model):
    """A plane that the registry knows; many flights have one that it does not."""

    tail_number = models.CharField(max_length=6, primary_key=True)
    year = models.SmallIntegerField(null=True, help_text="Year of manufacture.")
    manufacturer = models.CharField(max_length=60)
    model = models.CharField(max_length=40)
    engines = models.SmallIntegerField()
    seats = models.SmallIntegerField()

    def __str__(self) -> str:
        return self.tail_number


class Weather(models.Model):
    """The weather at an airport of New York in one hour."""

    origin = models.CharField(max_length=3)
    hour = models.DateTimeField()
    temperature = models.FloatField(null=True, help_text="In °F.")
    humidity = models.FloatField(null=True)
    wind_speed = models.FloatField(null=True, help_text="In mph.")
    precipitation = models.FloatField(null=True, help_text="In inches.")
    visibility = models.FloatField(null=True, help_text="In miles.")

    class Meta:
        verbose_name_plural = "weather"
        indexes = (models.Index(fields=["origin", "hour"], name="flights_weather_hour"),)

    def __str__(self) -> str:
        return f"{self.origin} {self.hour:%Y-%m-%d %H:%M}"


class Flight(models.Model):
    """A departure from New York. One without departure_delay was cancelled."""

    airline = models.ForeignKey(
        Airline, on_delete=models.CASCADE, related_name="flights", db_index=False
    )
    number = models.SmallIntegerField()
    tail_number = models.CharField(max_length=6, null=True)
    origin = models.CharField(max_length=3)
    destination = models.CharField(max_length=3)
    day = models.DateField()
    hour = models.DateTimeField(help_text="Full hour of the scheduled departure.")
    scheduled = models.DateTimeField(help_text="Scheduled departure.")
    departure_delay = models.SmallIntegerField(null=True, help_text="In minutes.")
    arrival_delay = models.SmallIntegerField(null=True, help_text="In minutes.")
    air_time = models.SmallIntegerField(null=True, help_text="In minutes.")
    distance = models.SmallIntegerField(help_text="In miles.")

    class Meta:
        indexes = (
            models.Index(fields=["airline", "day"], name="flights_flight_day"),
            models.Index(fields=["airline", "origin", "destination"], name="flights_flight_route"),
            models.Index(fields=["destination"], name="flights_flight_destination"),
            models.Index(fields=["tail_number", "scheduled"], name="flights_flight_plane"),
        )

    def __str__(self) -> str:
        return f"{self.airline_id}{self.number} {self.origin}–{self.destination} {self.day}"


class ReportRun(models.Model):
    """One run of a report, recorded by the report itself.

    Times are the database's clock. Without finished_at, the run has not ended or was killed.
    """

    job_id = models.BigIntegerField(db_index=True)
    attempt = models.SmallIntegerField()
    airline = models.CharField(max_length=200)
    queue = models.CharField(max_length=100)
    report = models.TextField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    succeeded = models.BooleanField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.report} #{self.job_id}, attempt {self.attempt}"


class Batch(models.Model):
    """Reports that the seeder has requested together, to be checked when they are done."""

    requested_at = models.DateTimeField(auto_now_add=True)
    job_count = models.IntegerField(help_text="How many reports the seeder has requested.")

    class Meta:
        verbose_name_plural = "batches"
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"batch {self.pk} of {self.job_count} reports"


class BatchJob(models.Model):
    """The seeder's note of one report: the id of its job, and its expected end."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="jobs")
    job_id = models.BigIntegerField()
    airline = models.CharField(max_length=200)
    queue = models.CharField(max_length=100)
    state = models.CharField(max_length=10, help_text="How the job must end.")
    runs = models.SmallIntegerField(help_text="How many runs it must have had by then.")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("batch", "job_id"), name="flights_batchjob_once"),
        )

    def __str__(self) -> str:
        return f"job {self.job_id} of batch {self.batch_id}"
