"""Jobs that POST JSON to an endpoint: `http_job.delay(url, payload)`. Needs the extra `[http]`."""

from .end import post_end
from .job import http_job

__all__ = ["http_job", "post_end"]
