"""Every transcript shows what the commands write today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.transcript import DOCUMENTS, play


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_transcript(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "market"
    folder.mkdir()
    monkeypatch.chdir(folder)
    text = document.read_text(encoding="utf-8")
    assert play(text, folder) == text


def test_there_are_transcripts() -> None:
    assert len(DOCUMENTS) >= 5
