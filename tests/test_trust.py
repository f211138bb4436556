"""Who starts programs, imports by name, and opens files: no module that `docs/security.md` does not name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "icemigrate"
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")

STARTS = frozenset(
    {"vcs/git.py", "spark/find_java.py", "spark/gateway.py", "spark/class_archive.py", "spark/java_errors.py"}
)
"""Modules that start a process, or wait for one."""
IMPORTS = frozenset({"cli/group.py", "render/formats.py"})
"""Modules that import by name."""
OPENS = {
    "system/file_reads.py": "files of a repository",
    "system/file_writes.py": "files of a repository",
    "system/repository_boundary.py": "folders of a repository",
    "system/process_identity.py": "what Linux shows of processes",
    "system/path_patterns.py": "folders of a repository",
    "files/parse/json_schemas.py": "the schemas of this package",
    "test_data/vocabulary.py": "the words of this package",
    "spark/class_archive.py": "the user's cache",
    "spark/class_archive_creator.py": "the user's cache, a temporary folder",
    "spark/gateway.py": "a temporary file",
    "spark/session_settings.py": "a temporary folder",
    "spark/jars.py": "the folders of jars",
    "spark/jar_download.py": "the cache of jars",
    "spark/find_java.py": "folders in which Java is installed",
    "execution/spark_start.py": "the folder of the SQLite catalog, which the environment names",
    "cli/exit.py": "the null device",
    "cli/streams.py": "the null device",
    "commands/user_files.py": "the standard outputs",
    "pipeline/parquet_sink.py": "a folder that the command line or the project file names",
    "pipeline/sink_folders.py": "that folder",
    "table_data/input_files.py": "files of data, which the command line names",
    "table_data/adopted_files.py": "a folder that the command line names",
    "table_data/generated_rows.py": "files of a temporary folder",
    "table_data/load_database.py": "a temporary folder",
    "table_data/parquet_output.py": "files of that folder",
    "metadata_engine/parquet_metrics.py": "files of that folder",
    "metadata_engine/file_stores.py": "files of that folder",
    "wal/log_folder.py": "the folder of a log, which its user names",
    "wal/log_lock.py": "the lock in that folder",
    "wal/segment_upload.py": "the spool of a log, which its user names",
    "wal/storage_path.py": "a remote storage, which its user names",
    "pipeline/checkpoint_copy.py": "a temporary folder",
    "pipeline/segment_lists.py": "the folder of a checkpoint, which its user names",
    "commands/test.py": "a temporary folder",
    "commands/desired_sources.py": "the folder of a declaration, named on the command line",
    "table_data/duckdb_session.py": "the extensions of DuckDB in their packages",
    "table_data/query_tables.py": "a temporary folder",
    "commands/generate.py": "a temporary folder",
    "table_data/query_views.py": "a temporary folder",
    "pipeline/collected_segments.py": "the folder of a log, which its user names",
    "pipeline/collector_files.py": "files of the Collector, which the user names",
    "pipeline/stream_source.py": "the folder of a log, which its user names",
    "pipeline/stream_checkpoint.py": "the folder of a checkpoint, which its user names",
    "pipeline/drained_totals.py": "the folder of a checkpoint, which its user names",
    "pipeline/batch_records.py": "the folder of a checkpoint, which its user names",
    "pipeline/attribute_records.py": "the folder of a checkpoint, which its user names",
}
"""Modules that open, list or change files, and what."""

_PROCESS_MODULES = frozenset({"subprocess", "multiprocessing", "pty", "popen2", "commands"})
_PROCESS_CALLS = re.compile(r"system|popen|fork|forkpty|exec[lv]\w*|spawn\w+|posix_spawnp?|startfile")
_PROCESS_NAMES = frozenset({"create_subprocess_exec", "create_subprocess_shell", "launch_gateway", "Popen"})
_IMPORT_NAMES = frozenset(
    {"import_module", "__import__", "eval", "exec", "compile", "run_module", "run_path"}
)
_IMPORT_MODULES = frozenset({"pickle", "marshal", "shelve", "runpy", "code", "dill", "cloudpickle", "jinja2"})
_FILE_METHODS = frozenset(
    {
        *(
            "open",
            "fdopen",
            "read_text",
            "read_bytes",
            "write_text",
            "write_bytes",
            "touch",
            "mkdir",
            "makedirs",
        ),
        *(
            "rmdir",
            "unlink",
            "hardlink_to",
            "symlink_to",
            "link",
            "symlink",
            "iterdir",
            "glob",
            "rglob",
            "walk",
        ),
        *("listdir", "scandir", "rmtree", "copyfile", "copytree", "move", "mkdtemp", "NamedTemporaryFile"),
        *("TemporaryFile", "TemporaryDirectory", "mkstemp"),
    }
)
_NO_FILES = {
    # PyIceberg's own, of a location that the catalog names; and what pip noted beside this package.
    ("catalog/pyiceberg_files.py", "open"),
    ("commands/init.py", "read_text"),
    # A method of its own.
    ("spark/partition_values.py", "open"),
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def called(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each call: what it is a method of, where that is a plain name, and its own name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield "", node.func.id
            elif isinstance(node.func, ast.Attribute):
                owner = node.func.value
                yield owner.id if isinstance(owner, ast.Name) else "…", node.func.attr


def starts_a_process(tree: ast.Module) -> bool:
    return bool(imported(tree) & _PROCESS_MODULES) or any(
        name in _PROCESS_NAMES or (owner == "os" and _PROCESS_CALLS.fullmatch(name))
        for owner, name in called(tree)
    )


def imports_by_name(tree: ast.Module) -> bool:
    return bool(imported(tree) & _IMPORT_MODULES) or any(
        (owner in ("", "importlib", "runpy", "builtins") and name in _IMPORT_NAMES)
        or (owner == "yaml" and name in ("load", "load_all", "unsafe_load", "full_load"))
        for owner, name in called(tree)
    )


def opens_files(module: str, tree: ast.Module) -> list[str]:
    """Calls that open, list or change files, by their names."""
    return [
        name
        for owner, name in called(tree)
        if name in _FILE_METHODS
        and owner != "self"
        and (owner or name == "open")
        and (module, name) not in _NO_FILES
        # The fields of a schema are walked too, and tables have a method of that name.
        and not (name == "walk" and owner != "os")
        and not (name == "link" and owner != "os")
        and not (name == "move" and owner != "shutil")
    ]


def test_only_the_named_modules_start_a_process() -> None:
    assert {name for name, tree in modules() if starts_a_process(tree)} == STARTS


def test_only_the_named_modules_import_by_name() -> None:
    assert {name for name, tree in modules() if imports_by_name(tree)} == IMPORTS


def test_only_the_named_modules_open_files() -> None:
    found = {name: calls for name, tree in modules() if (calls := opens_files(name, tree))}
    assert {name: calls for name, calls in found.items() if name not in OPENS} == {}


@pytest.mark.parametrize("module", sorted(STARTS | IMPORTS | set(OPENS)))
def test_the_page_names_every_such_module(module: str) -> None:
    assert f"`{module}`" in PAGE
    assert (PACKAGE / module).is_file()


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.system('x')",
        "import os\nos.execvp('x', [])",
        "import asyncio\nasyncio.create_subprocess_exec('x')",
    ],
)
def test_a_start_of_a_process_is_seen(code: str) -> None:
    assert starts_a_process(ast.parse(code))


@pytest.mark.parametrize(
    "code", ["import pickle", "import importlib\nimportlib.import_module('x')", "eval('x')", "yaml.load('x')"]
)
def test_an_import_by_name_is_seen(code: str) -> None:
    assert imports_by_name(ast.parse(code))


@pytest.mark.parametrize(
    "code", ["open('x')", "path.read_text()", "import os\nos.listdir('x')", "a.b.open('w')"]
)
def test_an_opened_file_is_seen(code: str) -> None:
    assert opens_files("x.py", ast.parse(code))
