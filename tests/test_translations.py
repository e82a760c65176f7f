"""The catalogues have the texts of the code, and Japanese is complete.

`make messages` updates and compiles them. To add a language:

1. Add it to the target `messages` of the Makefile, and to LANGUAGES below.
2. Run `make messages`, which makes a catalogue for the core and one for each app with texts.
3. Translate the entries. Write a small glossary as a comment at the head of the core's catalogue.
   Placeholders and HTML tags may change their order. For a text that Django also has, use Django's
   translation: ours overrides it on all pages of a project.
4. Run `make messages` again, then these tests.

Repeat steps 2 to 4 after a change of the code. Correct entries that are marked `fuzzy`, and remove
the mark.
"""

from __future__ import annotations

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import django
import pytest
from django.core.management import call_command
from django.utils import translation

import django_tenantqueue

PACKAGE = Path(django_tenantqueue.__file__).parent
APPS = ["", *sorted(f"contrib/{path.parent.name}" for path in PACKAGE.glob("contrib/*/locale"))]
"""What has catalogues: the core, and optional apps."""
LANGUAGES = ("ja",)
CATALOGUES = [(app, language) for app in APPS for language in LANGUAGES]
ADVICE = "GNU gettext is missing. On Debian and Ubuntu: apt-get install gettext"
PLACEHOLDER = re.compile(r"%%|%\(\w+\)[a-z]|%[a-z]|\{\w*\}|</?\w+[^>]*>")
LITERAL = re.compile(r'^"(?:[^"\\]|\\.)*"$')


@dataclass
class Message:
    """One entry of a catalogue."""

    context: str = ""
    id: str = ""
    plural: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    is_fuzzy: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return self.context, self.id, self.plural


def read_catalogue(path: Path) -> list[Message]:
    """Return the messages of a .po file, without its header."""
    found = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        message, parts, name = Message(), dict[str, str](), ""
        for line in block.splitlines():
            if line.startswith("#,") and "fuzzy" in line:
                message.is_fuzzy = True
            if line.startswith("#"):
                continue
            head, quote, rest = line.partition('"')
            name = head.strip() or name
            assert LITERAL.match(quote + rest), f"{path.name}: {line}"
            parts[name] = parts.get(name, "") + ast.literal_eval(quote + rest)
        message.context = parts.get("msgctxt", "")
        message.id, message.plural = parts.get("msgid", ""), parts.get("msgid_plural", "")
        message.texts = {
            int(name[7:-1] or 0) if "[" in name else 0: text
            for name, text in parts.items()
            if name.startswith("msgstr")
        }
        if message.id:
            found.append(message)
    return found


def catalogue(app: str, language: str) -> Path:
    return PACKAGE / app / "locale" / language / "LC_MESSAGES" / "django.po"


def compiled(path: Path) -> dict[object, str]:
    with path.open("rb") as file:
        return dict(gettext.GNUTranslations(file)._catalog)  # type: ignore[attr-defined]


def placeholders(text: str) -> Counter[str]:
    return Counter(PLACEHOLDER.findall(text))


def listed(messages: object) -> str:
    return "\n".join(sorted(str(message) for message in messages))  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def tools() -> None:
    """Need xgettext and msgfmt. Without them the tests are skipped, and fail if CI is set."""
    if shutil.which("xgettext") is None or shutil.which("msgfmt") is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop(ADVICE)


@pytest.fixture(scope="module")
def code(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package without catalogues."""
    copy = tmp_path_factory.mktemp("messages") / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "locale", "sql"))
    return copy


def texts_of(code: Path) -> set[tuple[str, ...]]:
    """Return what makemessages finds in a folder, apart from optional apps below it."""
    (code / "locale").mkdir()
    command = [
        *(sys.executable, "-m", "django", "makemessages", "--locale=ja", "--no-wrap"),
        "--ignore=contrib/*",
    ]
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    subprocess.run(command, cwd=code, check=True, capture_output=True, env=environment)
    return {m.key for m in read_catalogue(code / "locale" / "ja" / "LC_MESSAGES" / "django.po")}


def test_every_app_with_texts_has_a_catalogue() -> None:
    with_texts = {
        path.relative_to(PACKAGE).parts[1]
        for path in PACKAGE.glob("contrib/*/**/*.py")
        if re.search(r"\bn?gettext(_lazy)?\(|\b_\(", path.read_text())
    }

    assert {app.rpartition("/")[2] for app in APPS[1:]} == with_texts


@pytest.mark.parametrize("app", APPS)
def test_catalogue_has_the_texts_of_the_code(app: str, code: Path) -> None:
    wanted = texts_of(code / app)
    for language in LANGUAGES:
        has = {message.key for message in read_catalogue(catalogue(app, language))}
        missing, left_over = wanted - has, has - wanted
        assert not missing, f"Run make messages. Not in {language}:\n{listed(missing)}"
        assert not left_over, f"Run make messages. No longer in the code:\n{listed(left_over)}"


@pytest.mark.parametrize("app", APPS)
def test_japanese_lacks_no_translation(app: str) -> None:
    lacking = [
        message.key
        for message in read_catalogue(catalogue(app, "ja"))
        if message.is_fuzzy or not message.texts or not all(message.texts.values())
    ]
    assert not lacking, f"Translate in {catalogue(app, 'ja')}:\n{listed(lacking)}"


@pytest.mark.parametrize(("app", "language"), CATALOGUES)
def test_placeholders_and_tags_are_those_of_the_text(app: str, language: str) -> None:
    wrong = [
        (message.plural or message.id, text)
        for message in read_catalogue(catalogue(app, language))
        for text in message.texts.values()
        # The text for many has the number in every case.
        if text and placeholders(text) != placeholders(message.plural or message.id)
    ]
    assert not wrong, listed(wrong)


def test_text_has_one_translation_in_all_catalogues() -> None:
    found: dict[tuple[str, str, str], dict[int, str]] = {}
    for app in APPS:
        for message in read_catalogue(catalogue(app, "ja")):
            assert found.setdefault(message.key, message.texts) == message.texts, app


def test_texts_that_django_has_too_read_as_its_own() -> None:
    """A catalogue of an app overrides the texts of Django on every page of the project."""
    own = {
        m.id: m.texts[0]
        for app in APPS
        for m in read_catalogue(catalogue(app, "ja"))
        if not m.context
    }
    shared = 0
    for part in ("conf", "contrib/admin", "contrib/auth"):
        path = Path(django.__file__).parent / part / "locale/ja/LC_MESSAGES/django.mo"
        for text, wanted in compiled(path).items():
            if text and text in own:
                shared += 1
                assert own[str(text)] == wanted, text
    assert shared > 10


@pytest.mark.parametrize(("app", "language"), CATALOGUES)
def test_compiled_catalogue_is_up_to_date(
    app: str, language: str, tools: None, tmp_path: Path
) -> None:
    source, made = catalogue(app, language), tmp_path / "django.mo"
    subprocess.run(["msgfmt", "--check-format", "-o", str(made), str(source)], check=True)
    has, wanted = compiled(source.with_suffix(".mo")), compiled(made)
    differ = {key for key in has.keys() | wanted.keys() if key and has.get(key) != wanted.get(key)}
    assert not differ, f"Run make messages. Not compiled for {language}:\n{listed(differ)}"


@pytest.mark.django_db
def test_report_on_the_command_line_is_english_in_every_language(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with translation.override("ja"):
        call_command("tenantqueue", "status")

    assert "! no worker runs: start one with manage.py runworker" in capsys.readouterr().out
