"""Include these: `path("fireworq/", include("django_tenantqueue.contrib.fireworq.urls"))`."""

from __future__ import annotations

from django.urls import path, re_path

from . import jobs, queues, routings
from .answers import unknown

app_name = "tenantqueue_fireworq"

urlpatterns = [
    path("", queues.version, name="home"),
    path("version", queues.version, name="version"),
    path("job/<path:category>", jobs.push, name="push"),
    path("queues", queues.queue_list, name="queues"),
    path("queues/stats", queues.all_stats, name="stats"),
    path("queue/<str:name>", queues.queue, name="queue"),
    path("queue/<str:name>/node", queues.node, name="queue_node"),
    path("queue/<str:name>/stats", queues.stats, name="queue_stats"),
    path("queue/<str:name>/job/<str:job_id>", jobs.job, name="job"),
    path("queue/<str:name>/failed", jobs.failed_list, name="failed_list"),
    path("queue/<str:name>/failed/<str:job_id>", jobs.failed, name="failed"),
    re_path(
        r"^queue/(?P<name>[^/]+)/(?P<what>grabbed|waiting|deferred)$", jobs.job_list, name="jobs"
    ),
    path("routings", routings.routing_list, name="routings"),
    path("routing/<path:category>", routings.routing, name="routing"),
    re_path("", unknown),
]
