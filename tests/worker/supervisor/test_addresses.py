"""The addresses that a supervisor tries, one at a time."""

from __future__ import annotations

import socket

import pytest

from django_tenantqueue.worker.supervisor import addresses as module
from django_tenantqueue.worker.supervisor.addresses import list_addresses

NAMES = {"db1": ["10.0.0.1"], "db2": ["fd00::2", "10.0.0.2"]}


@pytest.fixture(autouse=True)
def names(monkeypatch):
    def look_up(host: str, port: str | None, **kind: int):
        if host not in NAMES:
            raise socket.gaierror("not known")
        # as the system does: the same address for several protocols
        return [
            (0, kind["type"], number, "", (a, port)) for a in NAMES[host] for number in (6, 132)
        ]

    monkeypatch.setattr(module.socket, "getaddrinfo", look_up)


def at(host: str, address: str, **more: str) -> dict[str, str]:
    return {"host": host, "hostaddr": address, **more}


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"host": "db1"}, [at("db1", "10.0.0.1")]),
        ({"host": "db1", "port": 5433}, [at("db1", "10.0.0.1", port="5433")]),
        ({"host": "db2"}, [at("db2", "fd00::2"), at("db2", "10.0.0.2")]),
        (
            {"host": "db2,db1", "port": "1,2"},
            [
                at("db2", "fd00::2", port="1"),
                at("db2", "10.0.0.2", port="1"),
                at("db1", "10.0.0.1", port="2"),
            ],
        ),
        (
            {"host": "db1,gone", "port": "7"},
            [at("db1", "10.0.0.1", port="7"), {"host": "gone", "port": "7"}],
        ),
        ({"host": "/run/postgresql", "port": "7"}, [{"host": "/run/postgresql", "port": "7"}]),
        # what libpq knows better
        ({}, [{}]),
        ({"host": ""}, [{}]),
        ({"host": "db1,"}, [{}]),
        ({"host": "db1,db2", "port": "1,2,3"}, [{}]),
        ({"host": "db1", "hostaddr": "10.0.0.9"}, [{}]),
        ({"service": "queue", "host": "db1"}, [{}]),
    ],
)
def test_addresses_are_those_of_the_hosts_in_order(params, found):
    assert list_addresses(params) == found


def test_addresses_come_in_any_order_when_the_load_is_to_be_shared():
    params = {"host": "db1,db2", "load_balance_hosts": "random"}

    firsts = {list_addresses(params)[0]["hostaddr"] for _ in range(200)}

    assert firsts == {"10.0.0.1", "fd00::2", "10.0.0.2"}
