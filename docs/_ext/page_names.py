"""Where the pages of the documentation explain a name, and what they say about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

DOCS = Path(__file__).parents[1]
PACKAGE = "django_tenantqueue"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page explains a name."""

    link: str
    cells: tuple[str, ...] = ()
    """Of its row, or the paragraph about it, without the name."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page, outside of examples."""

    text: str
    link: str
    """To its section."""
    titles: tuple[str, ...]
    """The headings above it, without backquotes: of the page, the section, the part."""

    @property
    def is_heading(self) -> bool:
        return bool(self.titles) and bool(re.match(r"#{1,3} ", self.text))


@dataclass
class Pages:
    """The pages of the documentation, with the parts that are made from the code."""

    expand: Callable[[str], str]
    read_before: dict[str, list[Line]] = field(default_factory=dict)
    sections: dict[tuple[tuple[str, ...], str], list[Line]] = field(default_factory=dict)

    def read(self, page: str) -> list[Line]:
        """Return the lines of a page, a path below docs/."""
        if page not in self.read_before:
            self.read_before[page] = list(self._read(page))
        return self.read_before[page]

    def _read(self, page: str) -> Iterator[Line]:
        address = page.removeprefix("reference/") if "reference/" in page else f"../{page}"
        link, titles, fence, seen = address, tuple[str, ...](), "", dict[str, int]()
        for line in self.expand((DOCS / page).read_text()).splitlines():
            if line.lstrip().startswith("```"):
                is_example = not fence and "{py:" not in line
                fence = "" if fence else "example" if is_example else "directive"
            head = None if fence else re.match(r"(#{1,3}) (.+)", line)
            if head:
                level, slug = len(head[1]), slug_of(head[2])
                titles = (*titles[: level - 1], head[2].replace("`", ""))
                count = seen[slug] = seen.get(slug, -1) + 1
                link = address if level == 1 else f"{address}#{slug}{f'-{count}' * bool(count)}"
            if fence != "example":
                yield Line(line, link, titles)

    def section(self, pages: tuple[str, ...], under: str) -> list[Line]:
        """Return the lines of pages, or of their section with a title, if there is one."""
        if (pages, under) not in self.sections:
            lines = [line for page in pages for line in self.read(page)]
            own = [x for x in lines if any(under in each.split(", ") for each in x.titles)]
            self.sections[pages, under] = own if under and own else lines
        return self.sections[pages, under]

    def find(
        self, name: str, pages: Iterable[str], under: str = "", *, last: bool = False
    ) -> Place | None:
        """Return the place that defines a name, else its heading, else the first that mentions it.

        `under`: only in the section with this title. `last`: the last one that defines it.
        """
        word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
        lines = self.section(tuple(pages), under)
        order = range(len(lines) - 1, -1, -1) if last else range(len(lines))
        for number in order:
            if place := _defined(name, lines, number):
                return place
        for line in lines:
            if line.is_heading and name in line.titles[-1].split(", "):
                return Place(line.link)
        for line, after in pairwise([*lines, *lines[-1:]]):
            if name not in line.text and name not in after.text:
                continue
            is_open = line.text.count("`") % 2  # a span that ends in the next line
            text = f"{line.text} {after.text}" if is_open else line.text
            if any(re.search(word, span) for span in re.findall(r"`([^`]+)`", text)):
                return Place(line.link)
        return None


def _defined(name: str, lines: list[Line], number: int) -> Place | None:
    line, page = lines[number], lines[number].link.partition("#")[0]
    if name not in line.text:
        return None
    own = rf"(?:await |[\w.]+\.)?{re.escape(name)}(?![\w-])"
    after = lines[number + 1].text if number + 1 < len(lines) else ""
    if line.text.startswith(("| `", "| [`", "| await `")):
        first, *rest = cells_of(line.text)
        if not any(re.match(own, span) for span in re.findall(r"`([^`]+)`", first)):
            return None
        cells = tuple(rest)
    elif re.match(rf"```\{{py:\w+\}} {own}", line.text):
        cells = (_paragraph(lines, number + 2),)
    elif after.startswith(": ") and re.search(rf"`{own}", line.text):
        cells = (_paragraph(lines, number + 1).removeprefix(": "),)
    else:
        return None
    return Place(line.link, tuple(cell.replace("](#", f"]({page}#") for cell in cells))


def _paragraph(lines: list[Line], number: int) -> str:
    while number < len(lines) and not lines[number].text:
        number += 1
    text = []
    while number < len(lines) and lines[number].text:
        text.append(lines[number].text.strip())
        number += 1
    return " ".join(text)


def slug_of(title: str) -> str:
    """Return the anchor of a heading, as MyST makes it."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower().replace(" ", "-"))


def cells_of(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, without the full stop."""
    line = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`\[(“\"*“])", line, maxsplit=1)[0].removesuffix(".")


def as_markdown(sentence: str) -> str:
    """Return a sentence of a docstring as the text of a cell."""
    parts = re.split(r"(`[^`]*`)", sentence)
    shown = [part if part.startswith("`") else part.replace("*", r"\*") for part in parts]
    return re.sub(r"(?<!\\)\|", r"\|", "".join(shown))


def named_in(text: str) -> list[str]:
    """Return the dotted paths of what a page imports or names."""
    paths = []
    for module, names in re.findall(rf"from ({PACKAGE}[\w.]*) import (\([^)]*\)|[^\n`;]*)", text):
        paths += [f"{module}.{name}" for name in re.findall(r"\w+", names.partition("#")[0])]
    return paths + re.findall(rf"[\"`]({PACKAGE}\.[\w.]+\.\w+)[\"`(]", text)
