"""The documentation, played: every fenced block of a page is run or checked, in order, in one folder.

The word behind the fence says what is done with a block:

- ``yaml PATH`` and ``csv PATH`` are written to that file of the page's project;
- ``console`` holds commands (``$ icemigrate …``), each with all that it writes; a line ``…`` stands for any
  lines;
- ``python PATH`` is written to that file too;
- ``python`` is run, and what it prints may follow in ``text``;
- ``sql`` is run by the project's Spark, and its table follows in ``text``;
- ``sh`` is what one types elsewhere: targets, extras, commands and options must exist; but a file of the
  page that is given its input there (``python PATH <<'END'``) is run with it, and what it writes follows in
  ``text``;
- ``json`` is read.

``python -m tests.support.played_documents`` plays all pages and writes down what is shown now.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.scripts.transcript import run
from tests.support.documented_names import check_line

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
_WRITTEN = (*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "examples").glob("*.md")))
PAGES = (README, ROOT / "CONTRIBUTING.md", *_WRITTEN)
PLAYED = tuple(page for page in PAGES if not page.read_text(encoding="utf-8").startswith("<!-- Made from"))
"""The pages that somebody wrote; the others are made by code that runs what it shows."""
HOME = "/srv/market"
SETTINGS = {
    "LOGNAME": "you",
    "CATALOG_URI": "https://catalog.example.com",
    "CATALOG_CREDENTIAL": "id:secret",
    "DB_PASSWORD": "secret",
}
"""Of the process in which pages are played."""

_FENCE = re.compile(r"^```(\w*) ?(\S*)$")
_GIVEN = re.compile(r"python (\S+\.py) <<")
_SPARK = re.compile(
    r"^\$ icemigrate (?:apply(?!.* --apply-with metadata)|ingest|test)|^```sql$|\.apply\(", re.MULTILINE
)
_WITHOUT_SPARK = re.compile(r"^```yaml icemigrate.yaml\n(?:(?!```).*\n)*.*apply_with: metadata", re.MULTILINE)
_CHANGING = (
    # The history shows no time of what took none; its next column is the user.
    (re.compile(r"\d+\.\d s|\d+ s\b|–(?=  +you\b)"), "0.1 s"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"), "2026-01-01 00:00:00"),
    (re.compile(r"\b[\d,]+(\.\d)?(?=/s\b| rows/s\b)"), "1"),
    (re.compile(r"\blocal-\d{5,}"), "local-1"),
    (re.compile(r"\bsnapshot \d{12,19}\b"), "snapshot 1"),
    (re.compile(r"(?<=\S) {2,}|-{5,}"), "  "),
)
"""What differs from run to run, and what is compared instead; columns take their widths from it."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    :param title: what stands behind the language.
    :param start: index of its first line of text.
    :param end: index of the closing fence.
    """

    language: str
    title: str
    start: int
    end: int


class WrongBlock(AssertionError):
    """A block that cannot be what it says it is."""


def blocks(lines: list[str]) -> Iterator[Block]:
    """The fenced blocks of a page."""
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if lines[at].startswith("```") and not fence:
            raise WrongBlock(f"line {at + 1}: what is `{lines[at]}`?")
        if fence:
            end = lines.index("```", at + 1)
            yield Block(fence[1], fence[2], at + 1, end)
            at = end
        at += 1


def needs_spark(page: Path) -> bool:
    """Whether something on the page is done by Spark."""
    text = page.read_text(encoding="utf-8")
    return _SPARK.search(text) is not None and _WITHOUT_SPARK.search(text) is None


def play(text: str, folder: Path) -> str:
    """The page as it is when its blocks are run in ``folder``, which becomes the working directory."""
    os.chdir(folder)
    os.environ.update(SETTINGS)
    lines = text.splitlines()
    shown: list[str] = []
    names: dict[str, Any] = {}
    at, answer = 0, list[str]()
    for block in blocks(lines):
        shown += lines[at : block.start]
        body, at = lines[block.start : block.end], block.end
        if block.language == "console":
            shown += _console(body, folder)
        elif block.language == "text":
            if not answer:
                raise WrongBlock(f"line {block.start}: `text` belongs below what writes it")
            shown += body if _alike(body, answer) else answer
        else:
            shown += body
            answer = _one(block, body, folder, names)
    return "\n".join([*shown, *lines[at:]]) + "\n"


def _one(block: Block, body: list[str], folder: Path, names: dict[str, Any]) -> list[str]:
    text = "\n".join(body) + "\n"
    if block.language in ("yaml", "python", "csv", "ini") and block.title:
        path = folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    elif block.language == "python":
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen):
            exec(compile(text, f"line {block.start}", "exec"), names)
        return screen.getvalue().strip().splitlines()
    elif block.language == "sql":
        return _query(text, folder)
    elif block.language == "sh" and (given := _GIVEN.match(body[0])):
        return _run_file(folder / given[1], _read_by_the_shell(body))
    elif block.language == "sh":
        for line in body:
            check_line(line)
    elif block.language == "json":
        json.loads(text)
    else:
        raise WrongBlock(f"line {block.start}: nothing is done with `{block.language} {block.title}`")
    return []


def _read_by_the_shell(body: list[str]) -> str:
    """What a pasted command gets as its input: a shell says it, with all its quoting."""
    asking = "\n".join([_GIVEN.sub("cat <<", body[0]), *body[1:]])
    return subprocess.run(["sh", "-euc", asking], capture_output=True, text=True, check=True).stdout


def _run_file(path: Path, given: str) -> list[str]:
    """What a file of the page writes when it is run, with the Spark that runs already."""
    screen, stdin = io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(given)
    try:
        with contextlib.redirect_stdout(screen):
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.stdin = stdin
    return screen.getvalue().strip().splitlines()


def _console(body: list[str], folder: Path) -> list[str]:
    starts = [i for i, line in enumerate(body) if line.startswith("$ ")]
    if starts[:1] != [0]:
        raise WrongBlock("a console begins with a command")
    shown: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(body)], strict=True):
        old = body[start + 1 : end]
        while old and not old[-1]:
            old.pop()
        new = [line.replace("FOLDER", HOME) for line in run(body[start][2:], folder)]
        shown += [body[start], *(old if _alike(old, new) else new), ""]
    return shown[:-1]


_START = "Starting Spark …"
"""What a user sees who runs the page's commands one by one; here one Spark runs for all of them."""


def _alike(old: list[str], new: list[str]) -> bool:
    """Whether a run shows what is written, but for what differs from run to run."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(_plain(line)) + r"\n"
        for line in old
        if line != _START
    )
    return re.fullmatch(pattern, "".join(f"{_plain(line)}\n" for line in new)) is not None


def _plain(line: str) -> str:
    for changing, plain in _CHANGING:
        line = changing.sub(plain, line)
    return line.rstrip()


def _query(text: str, folder: Path) -> list[str]:
    """What Spark's shell shows for a query; the catalog is that of the project's default environment."""
    from icemigrate.execution.spark_start import spark_settings
    from icemigrate.project import choose_environment, open_project
    from icemigrate.spark.session import start_spark

    session = start_spark(spark_settings(choose_environment(open_project(folder), None, dict(os.environ))))
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        session.sql(text.strip().rstrip(";")).show(100, truncate=False)
    return screen.getvalue().strip().splitlines()


def anchors(text: str) -> set[str]:
    """The names that headings are linked by."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.+)$", _without_blocks(text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
        if found[slug]:
            found[f"{slug}-{found[slug]}"] = 0
    return set(found)


def links(text: str) -> list[str]:
    """What the page links to."""
    return re.findall(r"\]\(([^)\s]+)\)", _without_blocks(text))


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _update(settings: Mapping[str, str]) -> None:
    os.environ.update(settings)
    for page in PLAYED:
        with tempfile.TemporaryDirectory() as scratch:
            # The folder's name is the project's.
            folder = Path(scratch).resolve() / "market"
            folder.mkdir()
            text = page.read_text(encoding="utf-8")
            now = play(text, folder)
            os.chdir(ROOT)
        if now != text:
            page.write_text(now, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    _update(SETTINGS)
