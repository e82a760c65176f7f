"""Hosts and addresses that HTTP jobs may not call."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from benchmarks.receiver import Reply
from django_tenantqueue.conf import read_settings
from django_tenantqueue.contrib.http import http_job
from django_tenantqueue.contrib.http.addresses import is_public, read_address, read_hosts
from django_tenantqueue.contrib.http.client import Client
from django_tenantqueue.contrib.http.exceptions import HttpAddressRefused
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending

from .conftest import Endpoint, local
from .test_job import error_of

REFUSED = [
    "127.0.0.1",
    "127.8.8.8",
    "127.1",
    "0.0.0.0",
    "0",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "①②⑦.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001:0:1::]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[v1.fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "localhost",
    "LOCALHOST",
]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Return what DNS says of a name, one answer after another; the last one is repeated."""
    answers: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in answers:
            return real(host, port, *args, **kwargs)
        said = answers[host].pop(0) if len(answers[host]) > 1 else answers[host][0]
        return [entry for ip in said for entry in real(ip, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def test_addresses_that_are_not_public_are_refused(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = {}
    port = endpoint.url.split(":")[2]
    ids = http_job.enqueue_many([f"http://{host}:{port}" for host in REFUSED])

    run_pending()

    jobs = [Job.objects.get(pk=job_id) for job_id in ids]
    said = {host: error_of(job)[:2] for host, job in zip(REFUSED, jobs, strict=True)}
    assert said == dict.fromkeys(REFUSED, ("error", "HttpAddressRefused"))
    for job in jobs:
        message = error_of(job)[2]
        assert "which is not public" in message or "nor an address in its usual form" in message
    assert endpoint.received == []


@pytest.mark.parametrize("found", [["127.0.0.2"], ["127.0.0.1", "127.0.0.2"], ["::1"]])
def test_name_is_refused_when_one_of_its_addresses_is_not_listed(
    endpoint: Endpoint, dns: dict[str, list[list[str]]], found: list[str]
):
    dns["hooks.example"] = [found]

    state, kind, message = error_of(
        endpoint.send(url=f"{endpoint.url}".replace("127.0.0.1", "hooks.example"))
    )

    assert (state, kind) == ("error", "HttpAddressRefused")
    assert "the host 'hooks.example' has the address " in message
    assert endpoint.received == []


def test_name_whose_answer_changes_is_refused_from_then_on(
    endpoint: Endpoint, dns: dict[str, list[list[str]]]
):
    dns["hooks.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    url = endpoint.url.replace("127.0.0.1", "hooks.example")

    first, second = endpoint.send(url=url), endpoint.send(url=url)

    # the first request has asked once: the address that was checked is the one it has called
    assert (first.state, second.state) == ("success", "error")
    assert len(endpoint.received) == 1
    assert endpoint.received[0].headers["host"].startswith("hooks.example:")


def test_unknown_name_is_retried(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch):
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)

    state, kind, message = error_of(endpoint.send(url="http://gone.example/"))

    assert (state, kind) == ("scheduled", "HttpJobFailed")
    assert message == "http://gone.example/: the name of its host cannot be resolved"


@pytest.mark.parametrize("host", ["a..example", f"{'a' * 64}.example"])
def test_name_that_dns_cannot_have_is_unknown(endpoint: Endpoint, host: str):
    _, _, message = error_of(endpoint.send(url=f"http://{host}/"))

    assert message == f"http://{host}/: the name of its host cannot be resolved"


@pytest.mark.parametrize("host", ["other.test", "example", "a.example.test", "8.8.8.8"])
def test_host_that_no_entry_names_is_refused(endpoint: Endpoint, host: str):
    state, kind, message = error_of(endpoint.send(url=f"http://{host}/"))

    assert (state, kind) == ("error", "HttpAddressRefused")
    assert f"the host {host!r} is not among the tenant's allowed hosts" in message


REFUSED_LOCATIONS = (
    *("http://127.0.0.2/", "//127.0.0.2/x", "http://[::1]/", "http://2130706433/"),
    "http://a.test/",
)
NO_URLS = ("ftp://127.0.0.1/", "http://u:p@127.0.0.1/", "http://[/", "http://[v1.a:b]/")


@pytest.mark.parametrize(
    ("status", "location", "kind"),
    [
        *((307, location, "HttpAddressRefused") for location in REFUSED_LOCATIONS),
        *((308, location, "HttpJobRejected") for location in NO_URLS),
    ],
)
def test_redirect_to_a_refused_address_is_refused(
    endpoint: Endpoint, settings: Any, status: int, location: str, kind: str
):
    settings.TENANTQUEUE = local(MAX_REDIRECTS=3)
    endpoint.replies = [Reply(status, headers={"Location": location})]

    assert error_of(endpoint.send())[:2] == ("error", kind)
    assert len(endpoint.received) == 1


def test_redirect_is_not_followed_by_default(endpoint: Endpoint):
    endpoint.replies = [Reply(307, headers={"Location": "/other"}), Reply()]

    state, _, message = error_of(endpoint.send())

    assert state == "scheduled"
    assert "the redirect is not followed" in message
    assert len(endpoint.received) == 1


def test_redirect_is_followed_when_the_settings_say_so(
    endpoint: Endpoint, settings: Any, dns: dict[str, list[list[str]]]
):
    settings.TENANTQUEUE = local(MAX_REDIRECTS=2)
    dns["hooks.example"] = [["127.0.0.1"]]
    elsewhere = endpoint.url.replace("127.0.0.1", "hooks.example")
    endpoint.replies = [
        Reply(307, headers={"Location": "/other"}),
        Reply(308, headers={"Location": elsewhere}),
        Reply(),
    ]

    job = endpoint.send({"n": 1}, headers={"Authorization": "Bearer hunter2"})

    assert job.state == "success"
    assert [request.path for request in endpoint.received] == ["/hook", "/other", "/hook"]
    assert {request.body for request in endpoint.received} == {b'{"n":1}'}
    assert len({request.webhook_id for request in endpoint.received}) == 1
    known = ["authorization" in request.headers for request in endpoint.received]
    assert known == [True, True, False]  # not to another host


def test_redirects_are_limited(endpoint: Endpoint, settings: Any):
    settings.TENANTQUEUE = local(MAX_REDIRECTS=2)
    endpoint.replies = [Reply(307, headers={"Location": "/hook"})]

    assert endpoint.send().state == "scheduled"
    assert len(endpoint.received) == 3


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_address_is_public(text: str):
    address = read_address(text)

    assert address is not None
    assert is_public(address)


def test_listed_network_allows_its_addresses_alone():
    hosts = read_hosts(("*", "10.1.0.0/16"))

    hosts.check("10.1.2.3")
    with pytest.raises(HttpAddressRefused):
        hosts.check("10.2.0.1")


@pytest.mark.parametrize("entry", ["https://a.example", "10.1.0.1/16", "a b", "a:80", ""])
def test_entry_that_is_no_host_and_no_network_is_refused(entry: str):
    with pytest.raises(InvalidOption, match="ALLOWED_HOSTS"):
        read_settings({"HTTP": {"ALLOWED_HOSTS": [entry]}})


def test_host_that_cannot_be_one_is_refused(endpoint: Endpoint):
    state, kind, message = error_of(endpoint.send(url=f"http://{'é' * 70}.example/"))

    assert (state, kind, message) == (
        "error",
        "HttpJobRejected",
        "the url is not valid: it needs https:// or http:// and a valid host",
    )


def test_kept_connection_is_not_used_by_those_who_may_not_make_it(
    endpoint: Endpoint, dns: dict[str, list[list[str]]]
):
    dns["hooks.example"] = [["127.0.0.1"]]
    url = endpoint.url.replace("127.0.0.1", "hooks.example")

    async def post() -> None:
        client = Client()
        try:
            await client.post(url, b"1", {}, read_hosts(("*.example", "127.0.0.1")), 5)
            with pytest.raises(HttpAddressRefused):
                await client.post(url, b"2", {}, read_hosts(("*.example",)), 5)
        finally:
            await client.close()

    asyncio.run(post())

    assert [request.body for request in endpoint.received] == [b"1"]
