"""Wrong credentials on real servers: one message each, the right exit code, and no secret anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.commands.doctor import doctor
from icemigrate.errors import ExitCode
from icemigrate.project import open_project
from tests.servers.lake import Kind, Lake

MIGRATION = "tables: [{name: market_data.trades, columns: [{name: id, type: long}]}]"
WRONG = "wrong-zt5qkc"
SECRET = re.compile(r"credential|password|key", re.IGNORECASE)


def secrets(variables: Mapping[str, str]) -> set[str]:
    """Every secret, and the parts of those that have some."""
    return {part for key, value in variables.items() if SECRET.search(key) for part in value.split(":")}


@pytest.fixture
def remote(lake: Lake) -> Lake:
    """A lake with a migration to apply."""
    lake.write("0001_make", MIGRATION)
    return lake


def test_nothing_that_is_written_holds_a_secret(
    remote: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(remote.folder)
    saved = tmp_path / "plan.json"
    assert main(["plan", "--out", str(saved), "--format", "json"]) == ExitCode.OK
    assert main(["apply", str(saved), "--auto-approve"]) == ExitCode.OK
    for command in (
        ["status"],
        ["history"],
        ["doctor"],
        ["doctor", "--spark"],
        ["doctor", "--format", "json"],
    ):
        assert main([*command]) == ExitCode.OK, command
    out, err = capfd.readouterr()
    name = f"{remote.kind.catalog}.{remote.history_name}"
    rows = repr(remote.sql(f"SELECT * FROM {name}"))
    properties = repr(remote.sql(f"SHOW TBLPROPERTIES {name}"))
    for text in (out, err, saved.read_text(encoding="utf-8"), rows, properties):
        assert [s for s in secrets(remote.kind.variables) if s in text] == []


@pytest.mark.parametrize("command", [["plan"], ["apply", "--auto-approve"], ["status"], ["doctor"]])
def test_a_wrong_credential_is_one_message_without_it(
    remote: Lake,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(remote.folder)
    if not spoil(remote.kind, monkeypatch):
        # The embedded catalog asks nobody who he is: it is a file, and a folder is none.
        (remote.folder / "icemigrate.yaml").write_text(
            "project: market\nenvironments: {here: {catalog: {type: sqlite, uri: migrations}}}\n",
            encoding="utf-8",
        )
    assert main(command) == ExitCode.ERROR
    out, err = capfd.readouterr()
    told = out if command == ["doctor"] else err
    assert remote.kind.name == "sqlite" or "credential" in told or "password" in told
    assert "Traceback" not in out + err
    assert [s for s in {WRONG, *secrets(remote.kind.variables)} if s in out + err] == []
    assert list(tmp_path.glob("*.json")) == []


@pytest.mark.parametrize("kind", ["rest"], indirect=True)
def test_wrong_keys_of_the_object_store_are_told_before_anything_runs(
    remote: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.apply()
    assert doctor(open_project(remote.folder)).ok
    monkeypatch.setenv("S3_SECRET_KEY", WRONG)
    result = doctor(open_project(remote.folder))
    states = {c.name: c.state for c in result.checkups}
    assert (states["catalog"], states["storage"]) == ("ok", "failed")
    assert WRONG not in repr(result)


def spoil(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Make the kind's login a wrong one; whether it has one."""
    found = [key for key in kind.variables if key in ("DATABASE_PASSWORD", "CATALOG_CREDENTIAL")]
    for key in found:
        user, separator, _ = kind.variables[key].rpartition(":")
        monkeypatch.setenv(key, f"{user}{separator}{WRONG}")
    return bool(found)
