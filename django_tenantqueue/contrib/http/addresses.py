"""Hosts and addresses that HTTP jobs and webhooks of alerts may call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from django.utils.module_loading import import_string

from ...conf import settings_of
from .exceptions import HttpAddressRefused
from .settings import HttpSettings, check_host_entry, read_network

Address = IPv4Address | IPv6Address
Networks = tuple[IPv4Network | IPv6Network, ...]

NAT64 = IPv6Network("64:ff9b::/96")
SPECIAL = (IPv4Network("192.0.0.0/24"), IPv6Network("64:ff9b:1::/48"))
"""Special-purpose networks (IANA) that older releases of Python treat as public."""
AZURE_METADATA = IPv4Address("168.63.129.16")
"""The one metadata service at a public address."""
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hosts:
    """A list of allowed hosts, read: see the setting ALLOWED_HOSTS."""

    names: tuple[str, ...]
    networks: Networks

    def check(self, host: str) -> None:
        """Raise HttpAddressRefused unless URLs may have this host."""
        address = read_address(host)
        if address is not None:
            check_address(self.networks, address, host)
            allowed = self.names_host(host) or is_listed(self.networks, address)
        elif ":" in host or _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
            raise HttpAddressRefused(
                f"{host!r} is neither a host name nor an address in its usual form, like 192.0.2.1"
            )
        else:
            allowed = self.names_host(host)
        if not allowed:
            raise HttpAddressRefused(
                f"the host {host!r} is not among the tenant's allowed hosts (ALLOWED_HOSTS and "
                "TENANT_HOSTS in TENANTQUEUE['HTTP'])"
            )

    def names_host(self, host: str) -> bool:
        name = host.rstrip(".").lower()
        return any(fnmatchcase(name, entry) for entry in self.names)


@lru_cache(maxsize=1000)
def read_hosts(entries: tuple[str, ...]) -> Hosts:
    """Return a list of allowed hosts, read. Raises InvalidOption."""
    names: list[str] = []
    networks: list[IPv4Network | IPv6Network] = []
    for entry in entries:
        check_host_entry("the list of allowed hosts", entry)
        network = read_network(entry)
        if network is None:
            names.append(entry.rstrip(".").lower())
        else:
            networks.append(network)
    return Hosts(tuple(names), tuple(networks))


def hosts_of(tenant: str) -> Hosts:
    """Return the hosts that requests of a tenant may call."""
    settings, said = settings_of(HttpSettings), None
    if settings.tenant_hosts is not None:
        said = import_string(settings.tenant_hosts)(tenant)
    return read_hosts(tuple(settings.hosts if said is None else said))


@lru_cache(maxsize=10_000)
def read_address(text: str) -> Address | None:
    """Return a text as an address, else None. An IPv4 address in IPv6 form becomes IPv4."""
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return inner
        if address in NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def check_address(networks: Networks, address: Address | None, host: str) -> None:
    """Raise HttpAddressRefused unless an address of `host` is public, or listed in a network."""
    if address is None or (not is_public(address) and not is_listed(networks, address)):
        raise HttpAddressRefused(
            f"the host {host!r} has the address {address}, which is not public. To allow it, list "
            "the address or its network in TENANTQUEUE['HTTP']['ALLOWED_HOSTS']"
        )


def is_public(address: Address) -> bool:
    """Whether an address is public."""
    special = (
        address.is_multicast
        or address.is_reserved
        or address == AZURE_METADATA
        or is_listed(SPECIAL, address)
    )
    return address.is_global and not special and not getattr(address, "is_site_local", False)


def is_listed(networks: Networks, address: Address) -> bool:
    return any(address in network for network in networks)
