"""The addresses behind the name of a server, to be tried one at a time.

libpq and psycopg give each of them as long as a single one, so that an attempt to connect would
take as many times as long.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from typing import Any


def list_addresses(params: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what to change in libpq's parameters for each address, in the order to try them.

    One entry that changes nothing when only libpq knows where the server is. A host that is not
    found stands for itself, so that libpq says what is wrong with it.
    """
    hosts = str(params.get("host") or "").split(",")
    ports = str(params.get("port") or "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    if not all(hosts) or len(ports) != len(hosts) or "hostaddr" in params or "service" in params:
        return [{}]
    found = []
    for host, port in zip(hosts, ports, strict=True):
        place = {"host": host, "port": port} if port else {"host": host}
        found += [{**place, **address} for address in _resolve(host, port)]
    if params.get("load_balance_hosts") == "random":
        random.shuffle(found)
    return found


def _resolve(host: str, port: str) -> list[dict[str, str]]:
    if host.startswith(("/", "@")):  # the directory of a socket
        return [{}]
    try:
        infos = socket.getaddrinfo(host, port or None, type=socket.SOCK_STREAM)
    except OSError:
        return [{}]
    return [{"hostaddr": address} for address in dict.fromkeys(str(info[4][0]) for info in infos)]
