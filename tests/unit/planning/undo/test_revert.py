from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from icemigrate import Project
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files
from icemigrate.errors import UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.project import open_project

CREATE = """
    description: Make t
    tables:
      - name: db.t
        columns:
          - {name: a, type: int, required: true}
          - {name: b, type: string}
          - {name: at, type: timestamp}
        partition_by: [day(at) as day]
        properties: {k: v}
"""
T = TableName.parse("db.t")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    (tmp_path / "migrations").mkdir()
    write(tmp_path, "0001", CREATE)
    return tmp_path


def write(folder: Path, version: str, text: str) -> None:
    (folder / "migrations" / f"{version}_m.yaml").write_text(dedent(text), encoding="utf-8")


def declared(folder: Path, upto: str = "9999") -> dict[TableName, Table]:
    project = open_project(folder)
    files = [f for f in load_valid_files(project) if f.version.text <= upto]
    rehearsed = plan_from_empty(project, files)
    assert rehearsed.diagnostics == ()
    return dict(rehearsed.state.tables)


def test_the_inverse_is_the_next_file_and_needs_nothing_added(folder: Path) -> None:
    write(
        folder,
        "0002",
        """
        description: Evolve
        allow: [destructive]
        tables:
          - name: db.t
            renames: {a: id}
            drop_columns: [b]
            columns: [{name: c, type: long}]
            partition_by: [hour(at) as hour]
            properties: {k: w, new: "1"}
        """,
    )
    write(folder, "0003", "{tables: [{name: db.t, columns: [{name: later, type: date}]}]}")
    result = Project(folder).revert("2")
    assert Path(result.path).name == "0004_revert_0002.yaml"
    text = (folder / "migrations" / "0004_revert_0002.yaml").read_text(encoding="utf-8")
    assert "description: 'Revert 0002: Evolve'" in text or 'description: "Revert 0002: Evolve"' in text
    assert "restore_columns:" in text
    assert result.notes == (
        "values of b of db.t return where data files still contain them; newer rows have none",
    )
    assert "destructive db.t.c" in text
    before, now = declared(folder, "0001")[T], declared(folder)[T]
    assert [(f.id, f.name) for f in now.schema.fields if f.name != "later"] == [
        (f.id, f.name) for f in before.schema.fields
    ]
    assert [f.name for f in now.spec.live] == ["day"]
    assert now.properties == before.properties


def test_a_table_that_was_made_is_dropped(folder: Path) -> None:
    write(folder, "0002", "{tables: [{name: db.n, columns: [{name: x, type: int}]}]}")
    Project(folder).revert("0002")
    assert set(declared(folder)) == {T}


def test_a_dropped_table_is_made_anew_and_the_note_says_that_it_is_empty(folder: Path) -> None:
    write(folder, "0002", "{allow: [destructive], tables: [{name: db.t, drop: true}]}")
    result = Project(folder).revert("0002")
    assert "created again, empty" in result.notes[0]
    assert set(declared(folder)) == {T}


def test_a_renamed_table_gets_its_name_back(folder: Path) -> None:
    write(folder, "0002", "{tables: [{name: db.u, renamed_from: db.t}]}")
    Project(folder).revert("0002")
    assert set(declared(folder)) == {T}


def test_a_wider_type_stays_and_alone_is_nothing_to_write(folder: Path) -> None:
    write(folder, "0002", "{tables: [{name: db.t, columns: [{name: a, type: long}, {name: c, type: int}]}]}")
    result = Project(folder).revert("0002")
    assert "the type of db.t.a stays" in result.notes[0]
    assert [f.name for f in declared(folder)[T].schema.fields] == ["a", "b", "at"]
    write(folder, "0004", '{tables: [{name: db.v, columns: [{name: x, type: "decimal(9,2)"}]}]}')
    write(folder, "0005", '{tables: [{name: db.v, columns: [{name: x, type: "decimal(11,2)"}]}]}')
    with pytest.raises(UsageError, match="nothing to write"):
        Project(folder).revert("0005")


def test_a_moved_reference_stays_and_alone_is_nothing_to_write(folder: Path) -> None:
    write(folder, "0002", "{tables: [{name: db.t, branches: {x: {}}, tags: {t: {}}}]}")
    moved = "tags: {t: {as_of: 2026-01-31T00:00:00Z}}, branches: {x: {snapshot: 7}}"
    write(folder, "0003", f"{{allow: [destructive], tables: [{{name: db.t, {moved}}}]}}")
    with pytest.raises(UsageError, match=r"nothing to write: branch x of db\.t stays where it is: only"):
        Project(folder).revert("3")
    write(folder, "0003", f"{{allow: [destructive], tables: [{{name: db.t, renames: {{b: c}}, {moved}}}]}}")
    result = Project(folder).revert("3")
    assert [note.partition(" stays")[0] for note in result.notes] == ["branch x of db.t", "tag t of db.t"]
    text = (folder / result.path).read_text(encoding="utf-8")
    assert "renames" in text
    assert "tags" not in text
    assert "branches" not in text


def test_an_unknown_version_is_wrong_usage(folder: Path) -> None:
    with pytest.raises(UsageError, match="no migration has this version"):
        Project(folder).revert("7")


def test_a_retyped_column_comes_back_and_overwritten_values_stay(folder: Path) -> None:
    before = declared(folder)[T]
    write(
        folder,
        "0002",
        """
        allow: [destructive]
        tables:
          - name: db.t
            retype: {b: {to: int, using: cast(b as int)}}
            backfill: [{set: {at: current_timestamp()}}]
        """,
    )
    result = Project(folder).revert("0002")
    assert result.notes == (
        "values of b of db.t return where data files still contain them; newer rows have none",
        "overwritten values of db.t stay as they are: only `rollback` restores them",
    )
    assert declared(folder)[T].schema.fields == before.schema.fields


def test_a_column_whose_name_was_taken_since_is_added_again_empty(folder: Path) -> None:
    write(folder, "0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b]}]}")
    write(folder, "0003", "{tables: [{name: db.t, columns: [{name: b, type: string}]}]}")
    write(folder, "0004", "{allow: [destructive], tables: [{name: db.t, drop_columns: [b]}]}")
    result = Project(folder).revert("0002")
    assert result.notes == ("b of db.t is added again, empty: its values do not return",)
