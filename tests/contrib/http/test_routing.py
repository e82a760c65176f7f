"""Posts at the end of jobs are routed."""

from __future__ import annotations

import pytest

from django_tenantqueue.contrib.routing.control import make_routing
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending
from tests.contrib.http.conftest import Endpoint
from tests.contrib.http.test_end import POST_END
from tests.factories import make_queue
from tests.testapp.tasks import noop

NEEDS = "routing"
pytestmark = pytest.mark.django_db


def test_it_is_routed_like_other_jobs(endpoint: Endpoint) -> None:
    make_queue("acme", "callbacks")
    make_routing(POST_END, "callbacks", tenant="acme")

    noop.using(tenant="acme", callback_url=endpoint.url).delay()
    run_pending()

    assert Job.objects.get(task=POST_END).queue.name == "callbacks"
