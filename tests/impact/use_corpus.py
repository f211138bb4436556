"""Files in the patterns of public dbt and Spark projects, with the verdict that each use must get.

The documents are below ``tests/data/impact_uses/``.  Each has ``files``, whose texts mark the uses:
``«total»`` is found, ``«?total»`` may break, and ``«!total»`` is in a place that is reported as not read.  A
finding at any other place is a false alarm.  ``python -m tests.impact.use_corpus`` prints the figures.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from icemigrate.commands.check import check
from icemigrate.project import open_project
from tests.impact.corpus import BEFORE, CHANGE

FILES = sorted((Path(__file__).parents[1] / "data" / "impact_uses").glob("*.yaml"))
FOUND, MAY_BREAK, NOT_READ, SILENT, FALSE_ALARM = "found", "may break", "not read", "silent", "false alarm"
_MARK = re.compile(r"«([?!]?)([^»]*)»")
_VERDICTS = {"": FOUND, "?": MAY_BREAK, "!": NOT_READ}
_CODES = {"IM111": FOUND, "IM113": FOUND, "IM112": MAY_BREAK, "IM114": NOT_READ}
Document = Mapping[str, Any]
Place = tuple[str, int, int]


def documents() -> list[tuple[str, Document]]:
    """All documents, each with its name."""
    return [
        (f"{file.stem}: {document['case']}", document)
        for file in FILES
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
        if document
    ]


def marked(name: str, text: str) -> tuple[str, dict[Place, str]]:
    """The text without its marks, and the verdict that each place must get."""
    wanted: dict[Place, str] = {}
    plain, at = "", 0
    for mark in _MARK.finditer(text):
        plain += text[at : mark.start()]
        line = plain.count("\n") + 1
        wanted[name, line, len(plain) - plain.rfind("\n")] = _VERDICTS[mark[1]]
        plain += mark[2]
        at = mark.end()
    return plain + text[at:], wanted


def judge(document: Document, folder: Path) -> Iterator[tuple[str, Place, str]]:
    """What becomes of each use, and each false alarm: the verdict, the place, and what was wanted.

    :param folder: an empty folder, which is the working directory.
    """
    wanted: dict[Place, str] = {}
    files = {
        "icemigrate.yaml": yaml.safe_dump({"project": "shop", "impact": document.get("impact", ["."])}),
        "migrations/0001_create.yaml": BEFORE,
        "migrations/0002_change.yaml": document.get("change", CHANGE),
    }
    for name, text in document["files"].items():
        files[name], more = marked(name, text)
        wanted |= more
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / ".git").mkdir()
    given: dict[Place, str] = {}
    for finding in check(open_project(folder)).diagnostics:
        place = finding.place
        if place is not None and place.file in document["files"]:
            given[place.file, place.line, place.column] = _CODES.get(finding.code, finding.code)
    unread = {place for place, verdict in given.items() if verdict == NOT_READ}
    used: set[Place] = set()
    for place, verdict in wanted.items():
        # What cannot be read is reported where its mistake is, which may be on another line.
        before = [one for one in unread if one[0] == place[0] and verdict == NOT_READ]
        if place in given and given[place] != NOT_READ:
            used.add(place)
            yield given[place], place, verdict
        elif before:
            used.update(before)
            yield NOT_READ, place, verdict
        else:
            yield SILENT, place, verdict
    for place in given.keys() - used:
        yield FALSE_ALARM, place, given[place]


def main() -> int:
    """Print the figures; 1 where a use is silent or an alarm is false."""
    figures: Counter[str] = Counter()
    home = Path.cwd()
    wrong = 0
    for name, document in documents():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for verdict, (file, line, column), wanted in judge(document, Path(folder)):
                figures[verdict] += 1
                if verdict != wanted:
                    wrong += 1
                    print(f"{name}: {file}:{line}:{column}: {verdict}, not {wanted}")
            os.chdir(home)
        figures["files"] += len(document["files"])
        figures["files without a use"] += not any("«" in text for text in document["files"].values())
    uses = sum(figures[verdict] for verdict in (FOUND, MAY_BREAK, NOT_READ, SILENT))
    print(
        f"{uses} uses in {figures['files']} files, {figures['files without a use']} documents without a use"
    )
    for verdict in (FOUND, MAY_BREAK, NOT_READ, SILENT, FALSE_ALARM):
        print(f"{figures[verdict]:4} {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
