"""Transcripts: what a terminal shows, as a document.

A line ``$ icemigrate …`` is a command; the lines below it are all that it writes, standard error included,
and ``[exit 3]`` where it ends with another code than 0.  A line ``> path`` writes the indented lines below it
to a file.  ``#`` begins a comment.  The folder's path stands as ``FOLDER``.

``python -m tests.scripts.transcript`` plays all documents and writes down what is shown now.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from icemigrate.cli import main

DOCUMENTS = sorted(Path(__file__).parent.glob("*.txt"))


def play(text: str, folder: Path) -> str:
    """The document as it is when its commands are run in ``folder``, which becomes the working directory."""
    os.chdir(folder)
    shown: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("> "):
            block = _indented(lines, at)
            path = folder / line[2:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{part[2:]}\n" for part in block), encoding="utf-8")
            shown += [line, *block]
            at += len(block)
        elif line.startswith("$ "):
            shown += [line, *run(line[2:], folder)]
            while at < len(lines) and not lines[at].startswith(("$ ", "> ", "# ")):
                at += 1
            shown.append("")
        else:
            shown.append(line)
    return "\n".join(shown).rstrip() + "\n"


def _indented(lines: list[str], at: int) -> list[str]:
    end = at
    while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
        end += 1
    return lines[at:end]


def run(command: str, folder: Path) -> list[str]:
    """What a command writes, line by line."""
    program, *args = shlex.split(command)
    assert program == "icemigrate", command
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        code = main(args)
    shown = [line.rstrip() for line in screen.getvalue().replace(str(folder), "FOLDER").splitlines()]
    return [*_without_edges(shown), *([f"[exit {int(code)}]"] if code else [])]


def _without_edges(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _update() -> None:
    for document in DOCUMENTS:
        with tempfile.TemporaryDirectory() as scratch:
            # The folder's name is the project's.
            folder = Path(scratch).resolve() / "market"
            folder.mkdir()
            text = play(document.read_text(encoding="utf-8"), folder)
            os.chdir(Path(__file__).parent)
            shutil.rmtree(folder)
        document.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{document.name}\n")


if __name__ == "__main__":
    _update()
