"""Addresses of the product's pages; each page of an airline names it."""

from django.urls import include, path, register_converter

from . import views


class AirlineCode:
    """Two capitals or digits, as in UA and 9E."""

    regex = "[A-Z0-9]{2}"

    def to_python(self, value: str) -> str:
        """Return the code."""
        return value

    def to_url(self, value: str) -> str:
        """Return the code."""
        return value


register_converter(AirlineCode, "airline")

app_name = "flights"

airline_patterns = [
    path("", views.dashboard, name="dashboard"),
    path("reports/<slug:report>/", views.request_report, name="request"),
    path("logbooks/", views.request_logbooks, name="logbooks"),
    path("recent/", views.recent_jobs, name="recent"),
    path("yours/", views.your_reports, name="yours"),
    path("jobs/<int:job_id>/", views.show_job, name="job"),
]
urlpatterns = [
    path("", views.choose_airline, name="airlines"),
    path("overview/", views.overview, name="overview"),
    path("<airline:airline>/", include(airline_patterns)),
]
