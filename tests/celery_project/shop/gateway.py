"""Other services that the shop calls. Tests make them fail."""


class Busy(Exception):
    """The service asks to call again later."""


def charge(order_id: int) -> str:
    return f"receipt-{order_id}"


def rates(currency: str) -> dict[str, float]:
    return {currency: 1.25}


def page(url: str) -> str:
    return f"words of {url}"
