"""A project whose tables are real ones on a SQLite catalog, applied without Java."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.errors import ExitCode
from icemigrate.project import Project, open_project
from icemigrate.table_data.table_session import TableSession, open_tables

ORDERS = """\
tables:
  - name: sales.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: customer, type: string}
      - {name: amount, type: "decimal(10,2)"}
      - {name: at, type: timestamptz}
"""


@dataclass(frozen=True)
class TableProject:
    """A project's folder, with a project file and migrations."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, *migrations: str) -> TableProject:
        """A project with these migrations, which are applied."""
        made = cls(folder)
        (folder / "icemigrate.yaml").write_text("project: sales\n", encoding="utf-8")
        for number, text in enumerate(migrations, 1):
            made.migrate(number, text)
        return made

    @property
    def project(self) -> Project:
        """The project, read again."""
        return open_project(self.folder)

    def migrate(self, number: int, text: str) -> None:
        """Write a migration and apply it."""
        path = self.folder / "migrations" / f"{number:04}_step.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        assert self.run("apply", "--auto-approve", "--quiet", "--apply-with", "metadata") == ExitCode.OK

    def run(self, *args: str) -> int:
        """The exit code of a command in this project."""
        return main([*args, "--project", str(self.folder)])

    @contextmanager
    def tables(self) -> Iterator[TableSession]:
        """Its tables, open."""
        with open_tables(self.project) as session:
            yield session


@pytest.fixture
def orders(tmp_path: Path) -> TableProject:
    """A project with the empty table `sales.orders`."""
    return TableProject.create(tmp_path, ORDERS)
