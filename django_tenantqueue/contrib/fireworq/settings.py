"""Settings of the Fireworq API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...exceptions import InvalidOption
from ...text import is_storable


@dataclass(frozen=True, slots=True)
class FireworqSettings:
    """Field names in capitals are the keys of TENANTQUEUE["FIREWORQ"]."""

    group: ClassVar[str] = "FIREWORQ"

    tenant_without_token: str | None = None
    """Tenant of requests to the Fireworq API without a token. Anyone who can reach the API can then
    use it for this tenant: set a tenant only on a trusted network. None: a token is required.

    Clients of the API make workers send HTTP requests."""

    def check(self) -> None:
        """Raise InvalidOption if the tenant is not valid."""
        tenant = self.tenant_without_token
        if tenant is not None and (len(tenant) > 200 or not is_storable(tenant)):
            raise InvalidOption(
                f"TENANTQUEUE['FIREWORQ']['TENANT_WITHOUT_TOKEN'] is {tenant!r}: it must be at "
                "most 200 characters long, without NUL characters and lone surrogates"
            )
