"""`http_job`: a task that POSTs JSON to an endpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ...conf import settings_of
from ...exceptions import InvalidArgument, InvalidOption, Permanent, Unsupported
from ...execution.current_job import current_job
from ...features import check_installed
from ...tasks import Task
from ...webhook_signatures import read_secret, signed_headers
from .addresses import read_hosts
from .answer import judge
from .exceptions import HttpJobFailed
from .request import check_call, check_request, encode_payload, in_seconds, shown
from .settings import LONGEST_REQUEST, HttpSettings

if TYPE_CHECKING:
    from .client import Client

check_installed(__name__)
P = ParamSpec("P")
R = TypeVar("R")


class HTTPTask(Task[P, R]):
    """A task whose arguments are a request. They are checked when it is enqueued."""

    def _check_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise TypeError, or InvalidArgument for a request that cannot be sent."""
        super()._check_call(args, kwargs)
        check_call(*args, **kwargs)


async def post(
    url: str,
    payload: Any = None,
    *,
    rule: str = "status",
    headers: dict[str, str] | None = None,
    request_timeout: float | timedelta | None = None,
    retry_delay: float | timedelta | None = None,
) -> dict[str, Any]:
    """POST `payload` as JSON to `url`. Return the status and the body of the answer.

    `rule`: "status" (2xx is success) or "fireworq" (the body's `status` decides; a str is posted
    as it is, and None as an empty body). `headers`: further headers. `request_timeout`: seconds or
    a timedelta for the whole request; default: TIMEOUT. The option `timeout` of the job limits its
    whole run. `retry_delay`: seconds or a timedelta from a failed request to the next, unless the
    answer has `Retry-After`; default: the backoff of the settings. Raises HttpJobFailed,
    HttpJobRejected, HttpAddressRefused, and Permanent for a request that cannot be sent.
    """
    running, settings = current_job(), settings_of(HttpSettings)
    # the value of a placeholder may be an int
    headers = {name.lower(): str(value) for name, value in (headers or {}).items()}
    try:
        check_request(
            url,
            rule=rule,
            headers=headers,
            request_timeout=request_timeout,
            retry_delay=retry_delay,
        )
        body = encode_payload(payload, rule)
    except InvalidArgument as error:
        raise Permanent(str(error)) from None
    client = await _client()
    entries = await client.ask(settings.tenant_hosts, running.tenant)
    hosts = read_hosts(tuple(settings.hosts if entries is None else entries))
    secrets = await client.ask(settings.secrets, running.tenant) or ()
    keys = [_key(secret) for secret in secrets]
    sent = {**headers, **signed_headers(f"job_{running.id}", body, int(time.time()), keys)}
    limit = running._claimed.timeout_seconds or LONGEST_REQUEST
    seconds = min(in_seconds(request_timeout) or settings.timeout, limit)
    origin = "/".join(url.split("/", 3)[:3]).partition("?")[0].lower()
    try:
        with client.breaker.attempt((running.tenant, origin)) as attempt:
            try:
                answer = await client.post(url, body, sent, hosts, seconds)
            except HttpJobFailed:
                attempt.is_healthy = False
                raise
            attempt.is_healthy = answer.is_of_a_healthy_endpoint
            result = judge(rule, answer, shown(url))
            attempt.is_healthy = True
            return result
    except HttpJobFailed as error:
        if error.after_seconds is None:
            error.after_seconds = in_seconds(retry_delay)
        raise


def _key(secret: object) -> bytes:
    try:
        key = read_secret(secret) if isinstance(secret, str) else b""
    except ValueError:
        key = b""
    if not key:
        raise InvalidOption(  # without the secret: the message is kept with the job
            "TENANTQUEUE['HTTP']['SECRETS'] returned an invalid secret: it must be 'whsec_' and "
            "base64"
        )
    return key


async def _client() -> Client:
    try:
        from .client import get_client
    except ImportError as error:
        raise Unsupported(
            f"HTTP jobs need a package that is not installed ({error.name}): "
            "pip install 'django-tenantqueue[http]'"
        ) from None
    return await get_client()


http_job = HTTPTask(post, name="django_tenantqueue.http.http_job")
"""The task: `http_job.using(tenant="acme").delay("https://example.com/hook", {"order": 7})`."""
