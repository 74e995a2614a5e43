"""Each Chinese document says what the English one says: section by section, what can be compared is the same."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TRANSLATED = ["README.md", "docs/tutorial.md"]
LANGUAGE = ".zh-CN"
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """What a section of a document holds that no translation changes."""

    level: int
    blocks: list[str]
    tables: list[list[int]]
    items: int
    links: list[str]
    pictures: list[str]
    code: Counter[str]
    figures: Counter[str]

    @classmethod
    def of(cls, text: str) -> Section:
        heading, prose = re.match(r"#*", text), FENCED.sub("", text)
        rows = re.findall(r"^(?:\|.*\n?)+", prose, re.MULTILINE)
        words = re.sub(r"`[^`\n]+`|\]\([^)]+\)", "", prose)
        return cls(
            level=len(heading.group()) if heading else 0,
            blocks=FENCED.findall(text),
            tables=[[row.count("|") for row in table.splitlines()] for table in rows],
            items=len(re.findall(r"^ *(?:[-*]|\d+\.) ", prose, re.MULTILINE)),
            links=sorted(path.replace(LANGUAGE, "") for path in re.findall(r"(?<!!)\[[^]]*\]\(([^)#]+)", prose)),
            pictures=re.findall(r"!\[[^]]*\]\(([^)]+)\)", prose),
            code=Counter(re.findall(r"`[^`\n]+`", prose.replace("\\|", "").replace(LANGUAGE, ""))),
            figures=Counter(re.findall(r"\d+(?:[.,]\d+)*", words)),
        )

    def differences(self, other: Section) -> dict[str, tuple[Any, Any]]:
        """Return what is here and not there, and the other way about, by name."""
        return {
            field.name: _difference(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        }


def _difference(one: Any, other: Any) -> tuple[Any, Any]:
    return (one - other, other - one) if isinstance(one, Counter) else (one, other)


def sections(document: Path) -> list[tuple[str, Section]]:
    """Return each section of a document with its heading; the text before the first heading is one as well."""
    hidden: list[str] = []

    def hide(block: re.Match[str]) -> str:
        hidden.append(block.group())
        return f"\0{len(hidden) - 1}\0"

    parts = re.split(r"^(?=#+ )", FENCED.sub(hide, document.read_text()), flags=re.MULTILINE)
    shown = [re.sub(r"\0(\d+)\0", lambda found: hidden[int(found[1])], part) for part in parts]
    return [(part.partition("\n")[0], Section.of(part)) for part in shown]


def translation(document: str) -> Path:
    return ROOT / document.replace(".md", f"{LANGUAGE}.md")


@pytest.mark.parametrize("document", TRANSLATED)
def test_a_translation_is_in_step(document: str) -> None:
    english, chinese = sections(ROOT / document), sections(translation(document))
    assert [section.level for _, section in english] == [section.level for _, section in chinese], "headings"

    behind = {
        heading: differences
        for (heading, one), (_, other) in zip(english, chinese, strict=True)
        if (differences := one.differences(other))
    }

    assert behind == {}


@pytest.mark.parametrize("document", TRANSLATED)
def test_the_two_languages_link_to_each_other(document: str) -> None:
    path = translation(document)
    assert f"[简体中文]({path.name})" in (ROOT / document).read_text().split("\n## ")[0]
    assert f"[English]({Path(document).name})" in path.read_text().split("\n## ")[0]
