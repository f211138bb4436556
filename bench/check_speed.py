"""How long ``icemigrate check`` takes as a whole process, beside what no check could do without.

``python bench/check_speed.py`` checks 200 files over 300 tables.  The two floors are a process that imports
what the check stands on, and one that also loads the files by PyYAML's loader in C, without judging a word of
them.  The ratios count, since machines are noisy.
"""

from __future__ import annotations

import argparse
import compileall
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import icemigrate

FILES = 200
TABLES = 300
COLUMNS = 20
_TYPES = ("long", "string", "double", "timestamptz", "decimal(18, 6)", "int", "date", "boolean")
_IMPORTS = "import yaml, jsonschema, click"
_LOADS = f"""{_IMPORTS}, pathlib
for file in sorted(pathlib.Path('migrations').glob('*.yaml')):
    yaml.load(file.read_text(encoding='utf-8'), Loader=yaml.CSafeLoader)
"""
_CHECK = "import sys; from icemigrate.cli import main; sys.exit(main(['check']))"


def make(folder: Path, files: int = FILES, tables: int = TABLES) -> None:
    """A project whose first half of files creates tables, and whose second half evolves them."""
    migrations = folder / "migrations"
    migrations.mkdir(parents=True)
    half = files // 2
    each = tables // half
    for number in range(1, files + 1):
        first = (number - 1) % half * each
        names = [f"bench.table_{i:03}" for i in range(first, first + each)]
        write = _creating if number <= half else _evolving
        text = "\n".join(["allow: [destructive]", "tables:", *(write(name) for name in names)])
        (migrations / f"{number:04}_step.yaml").write_text(text + "\n", encoding="utf-8")


def _creating(name: str) -> str:
    columns = "\n".join(
        f"      - {{name: column_{i:02}, type: {_quoted(_TYPES[i % len(_TYPES)])}, description: A {i}}}"
        for i in range(COLUMNS)
    )
    return (
        f"  - name: {name}\n    columns:\n{columns}\n"
        "    partition_by: [day(column_03) as at_day]\n    sort_by: [column_03, column_00 desc]\n"
        "    properties: {write.parquet.compression-codec: zstd}"
    )


def _evolving(name: str) -> str:
    return (
        f"  - name: {name}\n    renames: {{column_01: label}}\n"
        "    columns:\n"
        "      - {name: added, type: string, after: label}\n      - {name: column_05, type: long}\n"
        "    drop_columns: [column_07]\n    partition_by: [month(column_03) as at_month]\n"
        "    properties: {write.target-file-size-bytes: 268435456}"
    )


def _quoted(text: str) -> str:
    return f"'{text}'" if "," in text else text


def compile_modules() -> None:
    """Compile icemigrate's modules, as installing does: where it runs from its sources they may not be."""
    compileall.compile_dir(Path(icemigrate.__file__).parent, quiet=1)


def seconds(program: str, folder: Path) -> float:
    """Wall time of one process."""
    before = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before


def main() -> None:
    """Print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    compile_modules()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        programs = (_CHECK, _IMPORTS, _LOADS)
        runs = [[seconds(program, folder) for program in programs] for _ in range(rounds)]
    ours, imports, loads = (statistics.median(run) for run in zip(*runs, strict=True))
    # Of the largest child process, which is the check; in KB on Linux.
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{FILES} files, {TABLES} tables: icemigrate check {ours:.2f} s, {memory:.0f} MB; "
        f"`{_IMPORTS}` {imports:.2f} s, ratio {ours / imports:.1f}; "
        f"the same and `yaml.load` of the files {loads:.2f} s, ratio {ours / loads:.1f}"
    )


if __name__ == "__main__":
    main()
