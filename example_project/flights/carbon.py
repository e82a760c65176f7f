"""The price of carbon, as from an external service."""

GRAMS_PER_SEAT_MILE = 143
PRICE_PER_TONNE = 82.5


class ServiceDown(Exception):
    """The service does not answer."""


def price_per_tonne(*, attempt: int, outages: int) -> float:
    """Return today's price in dollars; the first `outages` attempts find the service down."""
    if attempt <= outages:
        raise ServiceDown(f"The price service does not answer (attempt {attempt}).")
    return PRICE_PER_TONNE
