# ruff: noqa: E501 (text of files)
"""Small files that would take much time or memory, and a check of each in a process with limits.

``python -m tests.support.resource_bombs --random 500 --seed 1`` checks the fixed ones and 500 random ones, and prints what each
took.  It ends with 1 where one of them ended with a traceback, was killed, or took more than its limits.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from icemigrate.cli import main as icemigrate
from icemigrate.files.read.for_each import ALL_COPIES_LIMIT

LARGEST = 1_000_000
"""Bytes of all files of a project together."""
MEMORY_MB = 1_024
CPU_SECONDS = 20
MOST_OUTPUT = 20_000_000

FIRST = "migrations/0001_a.yaml"
SECOND = "migrations/0002_b.yaml"
PROJECT = "icemigrate.yaml"
SQL = "models/a.sql"
_TABLE = "namespaces: [db]\ntables:\n  - name: db.t\n    columns:\n"
_EACH = "namespaces: [db]\ntables:\n"
_SEARCHED = {
    PROJECT: "project: p\nimpact: [models]\n",
    FIRST: f"{_TABLE}      - {{name: a, type: long}}\n",
    SECOND: "allow: [destructive]\ntables:\n  - name: db.t\n    drop_columns: [a]\n"
    "    columns: [{name: b, type: int}]\n",
}

Files = Mapping[str, str]


def _columns(count: int) -> str:
    return "".join(f"      - {{name: c{number}, type: long}}\n" for number in range(count))


def _default(type_: str, value: str) -> Files:
    column = f"      - {{name: a, type: '{type_}', default: {value}}}\n"
    return {FIRST: f"{_TABLE}{column}    format_version: 3\n"}


def _type(text: str) -> Files:
    return {FIRST: f"{_TABLE}      - {{name: a, type: '{text}'}}\n"}


def _column(name: str) -> Files:
    return {FIRST: f"{_TABLE}      - {{name: '{name}', type: long}}\n"}


def _sql(text: str) -> Files:
    return {**_SEARCHED, SQL: text}


def _python(text: str) -> Files:
    return {**_SEARCHED, "models/m.py": f"# db.t a\n{text}"}


def _second(text: str, columns: int = 1) -> Files:
    return {FIRST: _TABLE + _columns(columns), SECOND: f"tables:\n  - name: db.t\n    {text}\n"}


def _in_files(text: Callable[[int], str], count: int) -> Files:
    later = {
        f"migrations/{n:05d}_a.yaml": f"tables:\n  - name: db.t\n    {text(n)}\n" for n in range(2, count)
    }
    return {"migrations/00001_a.yaml": _TABLE + _columns(1), **later}


def _with_later(more: str, text: Callable[[int], str], count: int) -> Files:
    """A table with more keys, and migrations of it."""
    files = _in_files(text, count)
    return {**files, "migrations/00001_a.yaml": files["migrations/00001_a.yaml"] + more}


def _listed(word: str, count: int, more: str = "") -> str:
    return ",".join(f"{word}{n}{more}" for n in range(count))


def _numbers(count: int) -> str:
    return ",".join(map(str, range(count)))


def _naming(pattern: str, names: int) -> Files:
    chance = random.Random(names)
    columns = "".join(
        f"      - {{name: {''.join(chance.choices('ab', k=250))}, type: long}}\n" for _ in range(names)
    )
    return {PROJECT: f"rules: {{IM401: {{pattern: '{pattern}'}}}}\n", FIRST: _TABLE + columns}


FIXED: Mapping[str, Callable[[], Files]] = {
    "small exponent": lambda: _default("decimal(10,2)", "1e-99999999"),
    "large exponent": lambda: _default("decimal(10,2)", "'1e999999999'"),
    "exponent of a double": lambda: _default("double", "1e99999999"),
    "digits of a long": lambda: _default("long", "9" * 900_000),
    "digits of a decimal": lambda: _default("decimal(38,2)", "0." + "9" * 900_000),
    "copies of columns": lambda: {
        FIRST: f"namespaces: [db]\ntables:\n  - name: db.t_${{x}}\n    for_each: {{x: [{_numbers(9_999)}]}}\n"
        f"    columns:\n{_columns(1_000)}"
    },
    "entries with copies": lambda: {
        PROJECT: f"lists: {{l: [{_numbers(9_999)}]}}\n",
        FIRST: "namespaces: [db]\ntables:\n"
        + "".join(
            f"  - {{name: 'db.t{n}_${{x}}', for_each: {{x: l}}, columns: [{{name: a, type: long}}]}}\n"
            for n in range(9_000)
        ),
    },
    "copies in many entries": lambda: {
        PROJECT: f"project: p\nlists: {{l: ['{'y' * 200_000}']}}\n",
        FIRST: "namespaces: [db]\ntables:\n"
        + "".join(
            f"  - {{name: db.t{n}, for_each: {{x: l}}, description: '{'${x}' * 90}', "
            "columns: [{name: a, type: long}]}\n"
            for n in range(1_500)
        ),
    },
    "copies in many files": lambda: {
        PROJECT: f"project: p\nlists: {{l: [{_numbers(300)}]}}\n",
        **{
            f"migrations/{n:04d}_a.yaml": f"tables:\n  - name: db.t_${{x}}\n    for_each: {{x: l}}\n"
            f"    columns:\n{_columns(30)}"
            for n in range(1, 500)
        },
    },
    "copies up to the limit": lambda: {
        PROJECT: f"project: p\nlists: {{l: [{_numbers(10_000)}]}}\n",
        **{
            f"migrations/{n:04d}_a.yaml": f"{_EACH}  - {{name: 'db.t{n}_${{x}}', for_each: {{x: l}}, "
            "columns: [{name: a, type: long}]}\n"
            for n in range(1, ALL_COPIES_LIMIT // 10_000 + 1)
        },
    },
    "properties in many files": lambda: _in_files(lambda n: f"properties: {{custom.p{n}: x}}", 2_000),
    "tags in many files": lambda: _in_files(lambda n: f"tags: {{t{n}: {{}}}}", 2_000),
    "properties and migrations": lambda: _with_later(
        f"    properties: {{{_listed('p', 10_000, ': x')}}}\n", lambda n: f"description: '{n}'", 100
    ),
    "fields of one struct": lambda: _with_later(
        f"      - {{name: s, type: 'struct<{_listed('c', 12_000, ': int')}>'}}\n",
        lambda n: f"columns: [{{name: s.d{n}, type: int}}]",
        40,
    ),
    "columns for all tables": lambda: {
        FIRST: f"{_EACH}{''.join(f'  - {{name: db.t{n}, columns: [{{name: a, type: int}}]}}' + chr(10) for n in range(300))}",
        SECOND: f"tables:\n  - match: '*'\n    columns:\n{_columns(1_000)}",
    },
    "renames with properties": lambda: _with_later(
        "".join(f"      - {{name: c{n}, type: int}}\n" for n in range(1, 1_000))
        + f"    properties: {{{_listed('write.metadata.metrics.column.c', 1_100, ': none')}}}\n",
        lambda n: f"renames: {{c{n}: d{n}}}",
        30,
    ),
    "drops without consent": lambda: _second(
        f"allow: [{_listed('destructive db.u.c', 3_000)}]\n    drop_columns: [{_listed('c', 2_999)}]", 3_000
    ),
    "restored columns": lambda: {
        **_second(f"drop_columns: [{_listed('c', 3_999)}]", 4_000),
        "migrations/0003_c.yaml": f"tables:\n  - name: db.t\n    restore_columns: [{_listed('c', 3_999)}]\n",
    },
    "many retypes": lambda: _second(
        "retype: {" + ", ".join(f"c{n}: {{to: string, using: x}}" for n in range(9_000)) + "}", 9_000
    ),
    "many fills": lambda: _second(f"backfill: [{{set: {{{_listed('c', 3_000, ': 1')}}}}}]", 3_000),
    "many properties at once": lambda: _second(f"properties: {{{_listed('p', 10_000, ': x')}}}"),
    "many tags at once": lambda: _second(f"tags: {{{_listed('t', 20_000, ': {}')}}}"),
    "chain of columns": lambda: {
        FIRST: _TABLE
        + _columns(1)
        + "".join(f"      - {{name: c{n}, type: long, after: c{n - 1}}}\n" for n in range(1, 14_000))
    },
    "chain of renamed tables": lambda: {
        FIRST: f"{_EACH}{''.join(f'  - {{name: db.t{n}, columns: [{{name: a, type: int}}]}}' + chr(10) for n in range(2_000))}",
        SECOND: _EACH + "".join(f"  - {{name: db.t{n + 1}, renamed_from: db.t{n}}}\n" for n in range(2_000)),
    },
    "aliases in many files": lambda: {
        f"migrations/{n:04d}_a.yaml": f"tables:\n  - &a {{name: db.t{n}, columns: [{{name: a, type: int}}]}}\n"
        + "".join(f"  - {{<<: *a, name: db.t{n}_{at}}}\n" for at in range(1_000))
        for n in range(1, 9)
    },
    "deep structs": lambda: {
        FIRST: _TABLE
        + "".join(f"      - {{name: a{n}, type: '{'struct<a: ' * 50}int{'>' * 50}'}}\n" for n in range(1_500))
    },
    "combining marks": lambda: _column("a" + "\u0301\u0316" * 200_000),
    "hidden characters": lambda: {FIRST: "#\u200b\n" * 180_000},
    "many paths of SQL": lambda: {
        **_SEARCHED,
        PROJECT: f"project: p\nimpact: [{','.join(f'**/*a*{n}*b*/**/*.sql' for n in range(25_000))}]\n",
        **{f"models/m{n}.sql": "select 1" for n in range(1_000)},
    },
    "long path of SQL": lambda: {
        **_SEARCHED,
        PROJECT: f"project: p\nimpact: ['{'**/' * 100_000}x']\n",
        **{f"models/m{n}.sql": "select 1" for n in range(1_000)},
    },
    "long value put in often": lambda: {
        FIRST: f"namespaces: [db]\ntables:\n  - name: db.t\n    for_each: {{x: ['{'y' * 250_000}']}}\n"
        f"    description: '{'${x}' * 70_000}'\n    columns: [{{name: a, type: long}}]\n"
    },
    "dotted names": lambda: _sql("select " + "a." * 5_000 + "a from db.t"),
    "joins": lambda: _sql(
        "select a from db.t" + "".join(f" join db.t t{n} on t{n}.a = a" for n in range(1_500))
    ),
    "nested loops": lambda: _sql(
        '{% for x in ["a", "b"] %}' * 20 + "select {{ x }} from db.t" + "{% endfor %}" * 20
    ),
    "rebound DataFrames": lambda: _python(
        'df = spark.table("db.t")\n' + 'df = df.withColumn("z", F.col("a"))\n' * 3_000
    ),
    "unclosed statements": lambda: _sql("{%" * 50_000 + " select a from db.t"),
    "unclosed expressions": lambda: _sql("{{" * 50_000 + " select a from db.t"),
    "comments before SQL in Python": lambda: _python('x = "' + "/**/" * 100_000 + '"\n'),
    "long sums in Python": lambda: _python(("y = x" + "+x" * 2_000 + "\n") * 60),
    "long text summed in Python": lambda: _python(
        'a = "select ' + "x" * 300_000 + '"\nb = ""' + "+a" * 2_500 + "\n"
    ),
    "labels in one mapping of Python": lambda: _python(
        "spark.table('db.t')\nf({" + "'owner': 'a'," * 30_000 + "})\n"
    ),
    "words of one text in Python": lambda: _python("spark.table('db.t')\nx = '" + "a " * 300_000 + "'\n"),
    "elements of one mapping in Python": lambda: _python(
        "d = {"
        + "".join(f"'k{n}': 'db.t'," for n in range(10_000))
        + "}\n"
        + "".join(f"spark.table(d['k{n}'])\n" for n in range(10_000))
    ),
    "importers of one large module": lambda: {
        **_python("".join(f"k{n} = 'a'\n" for n in range(20_000))),
        **{f"models/m{n}.py": "import m\nspark.table('db.t').select(m.k1)\n" for n in range(300)},
    },
    "joined list": lambda: _sql(
        "{% set x = [" + "'a'," * 2_000 + "] %}" + "{{ x | join }} " * 400 + "select a from db.t"
    ),
    "implementations of one macro": lambda: _sql(
        "".join(f"{{% macro d{n}__m() %}}{{{{ m() }}}}{{% endmacro %}}" for n in range(6_000))
        + "select {{ m() }} from db.t"
    ),
    "unclosed comments": lambda: _sql("{#" * 50_000 + " select a from db.t"),
    "open conditions": lambda: _sql("{% if x %}" * 50_000 + " select a from db.t"),
    "references without end": lambda: _sql("{{ " + "ref('x', a=1 " * 30_000 + " }} select a from db.t"),
    "brackets": lambda: _sql("select " + "(" * 20_000 + "a" + ")" * 20_000 + " from db.t"),
    "terms": lambda: _sql("select a from db.t where " + " and ".join(["a = 1"] * 60_000)),
    "aliases": lambda: {
        FIRST: "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12))
    },
    "nested lists": lambda: {FIRST: "[" * 400_000},
    "unknown keys": lambda: {FIRST: "".join(f"tablez{number}: 1\n" for number in range(50_000))},
    "long line": lambda: {FIRST: "x" * 900_000},
    "nested types": lambda: _type("list<" * 50_000 + "long" + ">" * 50_000),
    "precision": lambda: _type(f"decimal({'9' * 800_000},1)"),
    "unknown columns": lambda: _second(f"drop_columns: [{','.join(f'd{n}' for n in range(40_000))}]", 5_000),
    "partition fields": lambda: _second(
        "partition_by: [" + ", ".join(f"'bucket({n}, c0)'" for n in range(1, 40_000)) + "]"
    ),
    "renames": lambda: _second(f"renames: {{{', '.join(f'c{n}: d{n}' for n in range(15_000))}}}", 15_000),
    "dots": lambda: _second(f"drop_columns: ['{'.'.join(['a'] * 200_000)}']"),
    "tables": lambda: {
        FIRST: "namespaces: [db]\ntables:\n"
        + "".join(f"  - {{name: db.t{n}, columns: [{{name: a, type: long}}]}}\n" for n in range(10_000))
    },
    "pattern that backtracks": lambda: _naming("(a+)+b", 3_000),
    "pattern with many states": lambda: _naming("(a|b)*a(a|b){140}", 3_000),
    "pattern with nested repetitions": lambda: _naming("(" * 60 + "a" + "{2}){9}" * 20 + ")*" * 40, 10),
    "long pattern": lambda: _naming("(" * 200_000 + ")*" * 200_000, 10),
    "blanks in a condition": lambda: _second(
        f"columns: [{{name: z, type: long}}]\n    backfill: [{{set: {{z: '1'}}, where: \"a{' ' * 800_000}b\"}}]"
    ),
}


def random_files(seed: int) -> Files:
    """A project of parts that are repeated, nested or put into each other, chosen by chance."""
    chance = random.Random(seed)
    words = [
        "a",
        "${x}",
        "{%",
        "{{",
        "}}",
        "'",
        "(",
        "[",
        "{a: ",
        "list<",
        "struct<a: ",
        "1e-9",
        "9",
        ".",
        "`",
        "&a ",
    ]
    words += [
        "*a ",
        "<<: ",
        "- ",
        "? ",
        "| ",
        "> ",
        "!",
        "%",
        "#",
        "icemigrate: ignore IM104 ",
        "\t",
        "é",
        "\u0301",
    ]

    def text(limit: int) -> str:
        part = "".join(chance.choices(words, k=chance.randint(1, 4)))
        times = chance.choice([1, 10, 1_000, 100_000])
        return (part * times)[: chance.randint(1, limit)]

    quoted = text(300_000).replace("'", "''").replace("\n", " ")
    count = chance.choice([1, 10, 1_000, 5_000])
    entries = {
        "raw": lambda: text(900_000),
        "type": lambda: _type(quoted)[FIRST],
        "default": lambda: _default(chance.choice(["long", "decimal(9,2)", "string", "date"]), f"'{quoted}'")[
            FIRST
        ],
        "name": lambda: (
            f"namespaces: [db]\ntables:\n  - name: 'db.{quoted}'\n    columns:\n{_columns(count)}"
        ),
        "each": lambda: (
            f"namespaces: [db]\ntables:\n  - name: 'db.t${{x}}'\n    for_each: {{x: [{_numbers(count)}]}}\n"
            f"    description: '{quoted}'\n    columns:\n{_columns(chance.choice([1, 100, 1_000]))}"
        ),
        "layout": lambda: (
            f"{_TABLE}{_columns(count)}    partition_by: ['{quoted}']\n    sort_by: [{_numbers(count)}]\n"
        ),
    }
    files = {FIRST: chance.choice(list(entries.values()))()}
    if chance.random() < 0.5:
        key = chance.choice(
            ["drop_columns", "restore_columns", "identifier", "renames", "properties", "tags"]
        )
        listed = ", ".join(
            f"c{chance.randint(0, 2 * count)}{': x' if key > 'j' and key != 'restore_columns' else ''}"
            for _ in range(count)
        )
        is_list = key in ("drop_columns", "restore_columns", "identifier")
        files[SECOND] = (
            f"tables:\n  - name: db.t\n    {key}: {'[' if is_list else '{'}{listed}{']' if is_list else '}'}\n"
        )
    if chance.random() < 0.5:
        files[PROJECT] = _SEARCHED[PROJECT]
        files[SQL] = "select a from db.t where " + text(500_000)
    return files


def outcome(files: Files) -> tuple[bool, str]:
    """Whether a check of the project ends as it must, and what it took."""
    folder = Path(tempfile.mkdtemp(prefix="bomb"))
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        assert size <= LARGEST, f"{size} bytes"
        child = os.fork()
        if child == 0:
            _check(folder)
        _, status, usage = os.wait4(child, 0)
        said = (folder / "said").read_text(encoding="utf-8", errors="replace")
        took = f"{size} B, {usage.ru_utime + usage.ru_stime:.1f} s, {usage.ru_maxrss // 1024} MB, {len(said)} characters"
        if os.WIFSIGNALED(status):
            return False, f"{took}: ended by {signal.Signals(os.WTERMSIG(status)).name}"
        words = next((w for w in ("Traceback", "this is a bug", "out of memory") if w in said), None)
        if words is not None:
            return False, f"{took}: {said[:300]}"
        is_long = len(said) > MOST_OUTPUT
        return os.WEXITSTATUS(status) in (0, 1, 3) and not is_long, f"{took}, exit {os.WEXITSTATUS(status)}"
    finally:
        shutil.rmtree(folder)


def _check(folder: Path) -> None:
    """Check the project in this process, which ends with it."""
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        os.chdir(folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        code = icemigrate(["check"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _load_modules() -> None:
    """Load what a check imports, so that each process begins with it; the input does not decide it."""
    own = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="bomb") as folder:
        for name, text in {**_sql("select a from db.t"), **_python('spark.table("db.t")\n')}.items():
            (Path(folder) / name).parent.mkdir(exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                icemigrate(["check"])
        finally:
            os.chdir(own)


def projects(count: int, seed: int) -> Iterator[tuple[str, Files]]:
    """The fixed projects, then random ones."""
    for name, make in FIXED.items():
        yield name, make()
    for number in range(seed, seed + count):
        yield f"random {number}", random_files(number)


def main() -> int:
    """Check them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    _load_modules()
    is_fine = True
    for name, files in projects(given.random, given.seed):
        good, took = outcome(files)
        is_fine = is_fine and good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {took}", flush=True)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
