"""The shape of the house: who imports whom, how large a file may grow, what a quick command may load."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "icemigrate"
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file())
HEAVY = {
    *("pyspark", "py4j", "pyiceberg", "sqlalchemy", "pyarrow", "fastavro", "pandas", "numpy", "duckdb"),
    "sqlglot",
}
LONGEST = 400
MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
OUTSIDE = ("tests", "docs", "schemas", "scripts", "rust")


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def committed_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_imports_flow_in_one_direction() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [str(tool), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 kept, 0 broken" in ran.stdout


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_grows_without_limit(module: Path) -> None:
    lines = len(module.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{lines} lines: find the second thing that this module does, and move it out"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_values_are_structs(module: Path) -> None:
    """Type checkers let `dataclasses.replace` pass on a value, and it fails when it runs."""
    text = module.read_text(encoding="utf-8")
    assert not re.search(r"^ *from dataclasses import .*\breplace\b", text, re.MULTILINE), (
        "icemigrate.frozen has one"
    )


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_patterns_name_ascii_digits(module: Path) -> None:
    r"""``\d`` accepts the digits of all scripts, which `int()` reads and a reviewer may not."""
    text = module.read_text(encoding="utf-8").replace(r"[^\W\d]", "")
    assert r"\d" not in text


def test_the_name_of_a_class_has_one_meaning() -> None:
    """No other class or type has the name of a class, apart from two names of the Python API."""
    homes: dict[str, list[str]] = {}
    classes = set[str]()
    for module in MODULES:
        text = module.read_text(encoding="utf-8")
        for keyword, name in re.findall(
            r"^(class )?([A-Z]\w*[a-z]\w*)(?: = |: TypeAlias = |[(:])", text, re.MULTILINE
        ):
            homes.setdefault(name, []).append(str(module.relative_to(PACKAGE)))
            classes |= {name} if keyword else set()
    twice = {name: found for name, found in homes.items() if name in classes and len(found) > 1}
    assert twice.pop("Project") == ["api/project.py", "project/project_values.py"]
    assert twice.pop("Writer") == ["iceberg/snapshot_writers.py", "wal/log_writer.py"]
    assert not twice


def test_every_room_is_a_package_and_so_in_the_wheel() -> None:
    folders = {module.parent for module in MODULES}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_command_line_is_one_of_the_rooms() -> None:
    assert "cli" in ROOMS


@pytest.mark.parametrize("room", [*ROOMS, "metadata_engine.history_rows"])
def test_importing_a_room_loads_nothing_heavy(room: str) -> None:
    name = "icemigrate" if room == "__init__" else f"icemigrate.{room}"
    ran = run_python(f"import sys, {name}; print(*sorted({HEAVY!r} & set(sys.modules)))")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []


def test_help_loads_nothing_heavy() -> None:
    also = {"rich", "jsonschema", "deepdiff"}
    ran = run_python(
        "import atexit, sys\n"
        f"atexit.register(lambda: print('loaded:', *sorted({HEAVY | also!r} & set(sys.modules))))\n"
        "sys.argv = ['icemigrate', '--help']\n"
        "from icemigrate.cli import main\n"
        "sys.exit(main())\n"
    )
    assert ran.returncode == 0, ran.stderr
    assert "Usage" in ran.stdout
    assert ran.stdout.splitlines()[-1].split() == ["loaded:"]


def on_the_map(path: str) -> Path:
    """A path of the page about architecture, which leaves out `icemigrate/`."""
    return ROOT / path if path.split("/")[0] in OUTSIDE or path == "setup.cfg" else PACKAGE / path


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/.-]+(?:/|\.\w+))`", MAP))))
def test_the_map_names_files_that_exist(path: str) -> None:
    if path == "icemigrate/":
        return
    assert on_the_map(path).is_dir() if path.endswith("/") else on_the_map(path).is_file()


def test_the_map_names_lists_and_builders_where_they_are() -> None:
    named = [
        (name.removesuffix("()"), path)
        for names, path in re.findall(r"((?:`\w+(?:\(\))?` and )?`\w+(?:\(\))?`) in `([\w/.]+)`", MAP)
        for name in re.findall(r"`([^`]+)`", names)
    ]
    assert len(named) > 15
    lines = {path: on_the_map(path).read_text(encoding="utf-8") for _, path in named}
    defined = r"^(?:(?:class|def) {0}\b|{0}(?:: [^=]+)? = )"
    assert [
        pair for pair in named if not re.search(defined.format(pair[0]), lines[pair[1]], re.MULTILINE)
    ] == []


def test_the_map_shows_the_layers_of_the_contract() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    contract = config["importlinter:contract:packages"]["layers"].strip().splitlines()
    shown = re.findall(r"^\| \d+ \| ([^|]+) \|", MAP, re.MULTILINE)
    assert [set(re.findall(r"\w+", row)) for row in shown] == [
        set(re.findall(r"\w+", row)) for row in contract
    ]


def test_every_key_of_the_schema_is_read() -> None:
    """A key that only the schema knows would be accepted, and change nothing."""
    schema = json.loads((ROOT / "icemigrate/schemas/migration.schema.json").read_text(encoding="utf-8"))
    readers = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "icemigrate/files/read").glob("*.py"))
    holders = (schema, schema["$defs"]["table"], schema["$defs"]["column"])
    keys = {key for holder in holders for key in holder["properties"]}
    assert len(keys) > 30
    assert [key for key in sorted(keys) if f'"{key}"' not in readers] == []


def test_no_committed_file_names_a_machine() -> None:
    # Put together here, so that this file does not name one itself.
    folders = "|".join(("wo" + "rk", "ro" + "ot", "home/[a-z]+"))
    pattern = re.compile(rf"(?<![\w.~$}}])/(?:{folders})/")
    found = []
    for path in committed_files():
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []
