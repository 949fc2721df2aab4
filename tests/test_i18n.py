"""Every string is translated; none is guessed; the catalogue is in step with the code."""

import subprocess
import sys
from pathlib import Path

import polib
import pytest

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"


@pytest.fixture(scope="module")
def extracted(tmp_path_factory) -> polib.POFile:
    """The strings now in the code, extracted afresh without touching the catalogue."""
    folder = tmp_path_factory.mktemp("messages")
    command = [
        sys.executable, "manage.py", "makemessages", "-l", "zh_Hans", "--no-location", "--no-obsolete",
        "--keep-pot", "-v", "0", "-i", "tests/*", "-i", "script/*", "-i", ".venv/*", "-i", "node_modules/*",
    ]  # fmt: skip
    before = CATALOGUE.read_bytes()
    try:
        subprocess.run(
            command,
            cwd=ROOT,
            check=True,
            env={"EMBEDDED": "1", "PATH": "/usr/bin:/bin", "DATA_DIR": str(folder)},
        )
        return polib.pofile(str(CATALOGUE.parents[2] / "django.pot"))
    finally:
        CATALOGUE.write_bytes(before)
        (CATALOGUE.parents[2] / "django.pot").unlink(missing_ok=True)


def test_every_string_in_the_code_is_translated(extracted):
    known = {(e.msgctxt, e.msgid) for e in polib.pofile(str(CATALOGUE)).translated_entries()}
    missing = [e.msgid for e in extracted if (e.msgctxt, e.msgid) not in known]
    assert not missing, f"{len(missing)} untranslated; run script/messages: {missing[:20]}"


def test_nothing_is_fuzzy_and_placeholders_agree():
    import re

    catalogue = polib.pofile(str(CATALOGUE))
    assert not catalogue.fuzzy_entries()
    broken = []
    for entry in catalogue.translated_entries():
        want = set(re.findall(r"%\((\w+)\)", entry.msgid + (entry.msgid_plural or "")))
        for text in [entry.msgstr, *entry.msgstr_plural.values()]:
            if text and set(re.findall(r"%\((\w+)\)", text)) != want:
                broken.append(entry.msgid)
    assert not broken


def test_one_idea_has_one_chinese_term():
    """docs/glossary.md decides; these were mixed once."""
    never = ("加速器", "站点", "词元", "密封投标", "拉黑", "待审阅")
    wrong = [
        (word, entry.msgid)
        for entry in polib.pofile(str(CATALOGUE)).translated_entries()
        for text in [entry.msgstr, *entry.msgstr_plural.values()]
        for word in never
        if word in text
    ]
    assert wrong == []


def test_words_of_yes_and_no_are_parted_by_the_comma_that_the_filter_reads():
    """`yesno` splits at ASCII commas only; at others it prints the value itself, "None" among them."""
    for entry in polib.pofile(str(CATALOGUE)):
        if entry.msgid.startswith("Yes,No"):
            assert entry.msgstr.count(",") == entry.msgid.count(","), entry.msgid


def test_english_has_plain_apostrophes():
    """The font of the PDFs has Chinese in it, and draws the curly one as wide as a character."""
    assert [entry.msgid for entry in polib.pofile(str(CATALOGUE)) if "’" in entry.msgid] == []
