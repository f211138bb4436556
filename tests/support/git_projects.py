"""A project in a Git repository of its own, made by the real program."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from icemigrate.commands.check import check
from icemigrate.commands.comparison_base import GitBase
from icemigrate.diagnostics import Diagnostic
from icemigrate.project import open_project

TRADES = "tables: [{name: db.trades, columns: [{name: id, type: long}, {name: price, type: double}]}]\n"
QUOTES = "tables: [{name: db.quotes, columns: [{name: id, type: long}]}]\n"


def column(name: str, table: str = "db.trades") -> str:
    """A migration that adds a column."""
    return f"tables: [{{name: {table}, columns: [{{name: {name}, type: string}}]}}]\n"


def is_of_rule(diagnostic: Diagnostic) -> bool:
    """Whether a rule found it, and not the reading or the planning of files."""
    return diagnostic.code.startswith("IM")


@dataclass(frozen=True)
class GitProject:
    """A repository, and the project that lies in it.

    :param top: of the repository.
    :param folder: of the project.
    """

    top: Path
    folder: Path

    @classmethod
    def make(cls, top: Path, inside: str = "") -> GitProject:
        """An empty repository with an empty project, on the branch ``main``."""
        folder = top / inside
        (folder / "migrations").mkdir(parents=True)
        project = cls(top, folder)
        project.git("init", "--quiet", "--initial-branch=main")
        return project

    def git(self, *arguments: str, fails: bool = False) -> str:
        """Run ``git`` without the settings of whoever runs the tests; :returns: what it wrote."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "Test" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "test@example.com" for who in ("AUTHOR", "COMMITTER")},
        }
        ran = subprocess.run(
            ["git", "-C", str(self.top), "-c", "protocol.file.allow=always", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode != 0) == fails, ran.stdout + ran.stderr
        return ran.stdout

    def path(self, name: str) -> Path:
        """A migration's path."""
        return self.folder / "migrations" / name

    def write(self, name: str, text: str) -> None:
        """Write a migration."""
        self.path(name).write_bytes(text.encode())

    def commit(self, **files: str) -> None:
        """Commit all there is, after writing migrations: ``_0001_trades="tables: …"``."""
        for name, text in files.items():
            self.write(f"{name.removeprefix('_')}.yaml", text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "step")

    def branch(self, name: str) -> None:
        """Begin a branch here."""
        self.git("checkout", "--quiet", "-b", name)

    def switch(self, name: str) -> None:
        """Go to a branch."""
        self.git("checkout", "--quiet", name)

    def findings(self, ref: str | None = "main", *, fix: bool = False, with_rules: bool = False) -> list[str]:
        """What ``check`` tells: ``place code``, a ``!`` before what the base has already.

        :param with_rules: whether to tell what rules found too.
        """
        base = None if ref is None else GitBase(ref, ref)
        result = check(open_project(self.folder), base, fix=fix)
        return [
            f"{'!' if d.message.startswith('already in the base') else ''}"
            f"{Path(d.place.file).name if d.place else '-'}:{d.place.line if d.place else 0} {d.code}"
            for d in result.diagnostics
            if with_rules or not is_of_rule(d)
        ]
