"""What routing adds to the core."""

from __future__ import annotations

from ...features import Feature
from ...operations.routes import forget_routes, routes_of


class Routing(Feature):
    """See features.py for when each method is called."""

    def choose_queue(self, using: str, tenant: str, name: str) -> str | None:
        routes = routes_of(using)
        return routes.queue_of(tenant, name) if routes else None

    def forget(self) -> None:
        forget_routes()
