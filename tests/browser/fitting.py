"""Whether pages fit the window."""

from collections.abc import Iterator, Mapping

from playwright.sync_api import Page, expect


def pages_that_fit(page: Page, pages: Mapping[str, str]) -> Iterator[str]:
    """Open pages by their addresses; yield the name of each one, which sticks out nowhere."""
    for name, address in pages.items():
        page.goto(address)
        expect(page.locator("#content")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        yield name
