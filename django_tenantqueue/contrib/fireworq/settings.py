"""Settings of the Fireworq API: keys of TENANTQUEUE."""

from __future__ import annotations

from dataclasses import dataclass

from ...exceptions import InvalidOption
from ...text import is_storable


@dataclass(frozen=True, slots=True)
class FireworqSettings:
    """Field names in capitals are the keys of TENANTQUEUE."""

    fireworq_tenant: str | None = None
    """Tenant for which the Fireworq API answers requests without a token. Whoever reaches it then
    may do everything there: set it only in a network whose every program may. None: a token is
    needed."""

    def check(self) -> None:
        """Raise InvalidOption for what cannot be a tenant."""
        tenant = self.fireworq_tenant
        if tenant is not None and (len(tenant) > 200 or not is_storable(tenant)):
            raise InvalidOption(
                f"TENANTQUEUE['FIREWORQ_TENANT'] is {tenant!r}: it must be at most 200 characters "
                "long, without NUL characters and lone surrogates"
            )
