"""Small projects and all that ``check`` tells of their last migration.

One folder for each rule, its ``cases.yaml`` holding documents parted by ``---``:

- ``case``: a title, unique in its file;
- ``project``: the project file, where there is one;
- ``before``: earlier migrations, one text or several;
- ``migration``: the last one, whose findings are told;
- ``told``: a line each, ``line:column severity code: message; hint``.

``python -m tests.checks.corpus tests/checks/IM104/cases.yaml`` writes ``told`` anew; read what it
wrote, since a document is right because somebody judged it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from icemigrate.commands.check import check
from icemigrate.diagnostics import Diagnostic
from icemigrate.project import open_project

HERE = Path.cwd()
FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("IM*/cases.yaml"))


@dataclass(frozen=True)
class Case:
    """A document.

    :param rule: the id of the rule whose folder it stands in.
    """

    rule: str
    says: Mapping[str, Any]

    @property
    def title(self) -> str:
        return str(self.says["case"])

    @property
    def migrations(self) -> tuple[str, ...]:
        before = self.says.get("before", ())
        return (*([before] if isinstance(before, str) else before), self.says["migration"])


def cases(file: Path) -> tuple[Case, ...]:
    """The documents of a file."""
    return tuple(Case(file.parent.name, d) for d in yaml.safe_load_all(file.read_text(encoding="utf-8")) if d)


def all_cases() -> tuple[Case, ...]:
    """The documents of all files."""
    return tuple(case for file in FILES for case in cases(file))


def found(folder: Path, migrations: tuple[str, ...], project: str = "") -> tuple[Diagnostic, ...]:
    """What ``check`` tells of a project that is written into an empty folder.

    Its migrations are ``0001_step.yaml``, ``0002_step.yaml``, …
    """
    (folder / "icemigrate.yaml").write_text(project, encoding="utf-8")
    (folder / "migrations").mkdir()
    for number, text in enumerate(migrations, start=1):
        (folder / "migrations" / f"{number:04}_step.yaml").write_text(text, encoding="utf-8")
    return check(open_project(folder)).diagnostics


def of_last(folder: Path, case: Case) -> Iterator[str]:
    """All that is told of a document's last migration; ``folder`` is the working directory."""
    last = f"{len(case.migrations):04}_step.yaml"
    for d in found(folder, case.migrations, case.says.get("project", "")):
        if d.place is not None and d.place.file == f"migrations/{last}":
            yield line_of(d)


def line_of(d: Diagnostic) -> str:
    """A finding as documents have it."""
    assert d.place is not None
    hint = f"; {d.hint}" if d.hint else ""
    return f"{d.place.line}:{d.place.column} {d.severity.value} {d.code}: {d.message}{hint}"


def _write(file: Path) -> None:
    text = ""
    for case in cases(file):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            says = {**case.says, "told": list(of_last(Path(folder), case))}
            os.chdir(HERE)
        text += ("---\n" if text else "") + yaml.dump(
            says, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2000
        )
    file.write_text(text, encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)

if __name__ == "__main__":
    for name in sys.argv[1:] or map(str, FILES):
        _write(Path(name))
