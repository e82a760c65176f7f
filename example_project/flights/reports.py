"""The catalogue of reports and their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from django_tenantqueue import Task

from . import tasks
from .tables import MONTHS

MONTH_CHOICES = [("", "the whole year"), *enumerate(MONTHS, start=1)]


def _whole_number(value: str) -> int | None:
    return int(value) if value else None


class NoParameters(forms.Form):
    """For a report that takes none."""


class RouteForm(forms.Form):
    """Parameters of route_delays. The airport is not checked here: the report does so itself."""

    month = forms.TypedChoiceField(
        choices=MONTH_CHOICES, coerce=_whole_number, empty_value=None, required=False
    )
    airport = forms.CharField(
        max_length=3, required=False, widget=forms.TextInput(attrs={"placeholder": "any, e.g. LAX"})
    )


class DaysForm(forms.Form):
    """Parameters of worst_days."""

    days = forms.IntegerField(min_value=1, max_value=100, initial=20)


class MeasureForm(forms.Form):
    """Parameters of weather_delays."""

    measure = forms.ChoiceField(
        choices=[("wind", "wind"), ("visibility", "visibility"), ("rain", "rain")]
    )


class ToleranceForm(forms.Form):
    """Parameters of punctuality."""

    tolerance = forms.IntegerField(
        min_value=0, max_value=180, initial=15, label="Tolerance in minutes"
    )


class OutagesForm(forms.Form):
    """Parameters of carbon_cost."""

    outages = forms.TypedChoiceField(
        choices=[
            (0, "available"),
            (1, "fails once"),
            (2, "fails twice"),
            (9, "down"),
        ],
        coerce=int,
        label="Price service",
    )


class KnockOnForm(forms.Form):
    """Parameters of knock_on."""

    hours = forms.TypedChoiceField(
        choices=[(24, "a day"), (72, "three days"), (168, "a week")],
        coerce=int,
        label="Look ahead",
    )
    everyone = forms.BooleanField(required=False, label="Planes of all airlines")


@dataclass(frozen=True, slots=True)
class Report:
    """One entry of the catalogue."""

    title: str
    about: str
    task: Task[..., Any]
    form: type[forms.Form] = NoParameters

    @property
    def name(self) -> str:
        """Name in URLs."""
        return self.task.func.__name__

    def describe(self, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return a job's arguments in the words of the form; those left empty are left out."""
        shown = []
        for bound in self.form():
            value = arguments.get(bound.name)
            if value is None or value in ("", False):
                continue
            choices = {str(key): text for key, text in getattr(bound.field, "choices", ())}
            text = "yes" if value is True else choices.get(str(value), str(value))
            shown.append((bound.label, text))
        return shown

    @property
    def queue(self) -> str:
        """Queue in which the report's jobs wait."""
        return str(self.task.options.queue)


REPORTS = (
    Report(
        "Delays per route",
        "Delays by route. An unknown airport fails at once, without a retry.",
        tasks.route_delays,
        RouteForm,
    ),
    Report(
        "Monthly punctuality",
        "Punctuality by month, compared with all airlines.",
        tasks.punctuality,
        ToleranceForm,
    ),
    Report(
        "Worst days", "Days with the longest delays, and their weather.", tasks.worst_days, DaysForm
    ),
    Report(
        "Weather and delays",
        "Departure delays by wind, visibility or rain.",
        tasks.weather_delays,
        MeasureForm,
    ),
    Report(
        "Airport ranking",
        "Arrival delays at each airport, compared with competitors.",
        tasks.airport_ranking,
    ),
    Report("Age of the fleet", "Delays by the age of the planes.", tasks.fleet_age),
    Report(
        "Carbon cost",
        "Uses prices of an external service. If the service fails, the job is retried.",
        tasks.carbon_cost,
        OutagesForm,
    ),
    Report(
        "Knock-on delays",
        "Joins every flight with the plane's later ones. Takes seconds, in its own queue.",
        tasks.knock_on,
        KnockOnForm,
    ),
)
BY_NAME = {report.name: report for report in REPORTS}
BY_TASK = {report.task.name: report for report in REPORTS}
TITLES = {
    **{report.task.name: report.title for report in REPORTS},
    tasks.logbook.name: "Logbook of a plane",
    tasks.sum_up_logbooks.name: "Logbooks of the fleet",
    tasks.export_flights.name: "Flights for an airport",
}
