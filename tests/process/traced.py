"""Settings of workers that write their spans into the file $TEST_SPANS, and the app for it."""

import atexit
import os

from django.apps import AppConfig

from tests.process.settings import *  # noqa: F403
from tests.process.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process.traced.Traced"]
AN_HOUR = 3_600_000


class Traced(AppConfig):
    """Sets OpenTelemetry up as a project does. Its spans are written at the end of a process."""

    name = "tests.process.traced"
    label = "traced"

    def ready(self) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

        from django_tenantqueue.contrib.otel import instrument

        out = open(os.environ["TEST_SPANS"], "a")  # noqa: SIM115
        atexit.register(out.close)  # called after the provider's own
        exporter = ConsoleSpanExporter(
            out=out, formatter=lambda span: f"{span.to_json(indent=None)}\n"
        )
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=AN_HOUR))
        trace.set_tracer_provider(provider)
        instrument()
