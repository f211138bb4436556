"""Uses in the patterns of public projects: none is silent, and no file without a use raises an alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.sql_impact.python_sql import looks_like_sql
from tests.impact.use_corpus import FALSE_ALARM, SILENT, Document, documents, judge

DOCUMENTS = documents()


@pytest.mark.parametrize(("name", "document"), DOCUMENTS, ids=[name for name, _ in DOCUMENTS])
def test_each_use_gets_its_verdict_and_nothing_else_is_reported(
    name: str, document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    judged = list(judge(document, tmp_path))
    wrong = [
        f"{name}: {place}: {verdict}, not {wanted}" for verdict, place, wanted in judged if verdict != wanted
    ]
    assert wrong == []
    assert not {verdict for verdict, _, _ in judged} & {SILENT, FALSE_ALARM}


def test_the_corpus_is_as_large_as_the_page_says() -> None:
    texts = [text for _, document in DOCUMENTS for text in document["files"].values()]
    page = (Path(__file__).parents[2] / "docs" / "project-file.md").read_text(encoding="utf-8")
    assert f"has {sum(text.count('«') for text in texts)} uses" in page
    assert f"The {sum('«' not in text for text in texts)} files" in page.replace("\n", " ")


def test_comments_before_a_statement_are_read_in_linear_time() -> None:
    assert not looks_like_sql("/**/" * 100_000 + "x")
    assert not looks_like_sql("/*" * 100_000)
    assert looks_like_sql("/* a * b **/ -- c\n select 1")
