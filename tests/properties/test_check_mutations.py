"""Files that went wrong in any way: ``check`` tells where, or has nothing against them; it never breaks.

Valid files are changed as text (what a slip of the hand or a bad merge does) and as data (what a
misunderstanding does), and checked by the command as a whole, as a process would: exit code and JSON.
"""

from __future__ import annotations

import functools
import io
import json
import random
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icemigrate.cli import main
from icemigrate.files.lock_file import FILE_NAME

ROOT = Path(__file__).resolve().parents[2]
LOCK = f"migrations/{FILE_NAME}"

_PROJECT = """\
project: market
lists: {tenants: [acme, globex]}
environments:
  local: {catalog: {type: sqlite}}
default_environment: local
"""
_WIDE = """\
description: All that can be said
allow: [destructive, incompatible market_data.trades]
because: Tried
namespaces: [market_data.raw]
tables:
  - name: market_data.events
    description: All there is
    columns:
      - {name: id, type: long, required: true}
      - {name: at, type: timestamptz, required: true}
      - {name: address, fields: [{name: zip, type: string}, {name: city, type: string, default: Bern}]}
      - {name: tags, element: {type: string}}
      - {name: prices, key: {type: string}, value: {type: "decimal(9, 2)"}}
    identifier: [id]
    partition_by: [day(at) as at_day, "bucket(16, id)"]
    sort_by: [at desc nulls last, id]
    write_distribution: hash
    properties: {write.format.default: parquet, write.parquet.compression-codec: zstd}
    retention: {snapshots: {max_age: 30d, keep_at_least: 10}, rows: {column: at, max_age: 2555d}}
    branches: {audit: {retention: {max_age: 7d}}}
    format_version: 3
  - name: "market_data.${tenant}"
    for_each: {tenant: tenants}
    columns: [{name: id, type: long}]
  - match: "market_data.*"
    columns: [{name: loaded_at, type: timestamptz}]
"""
_NEXT = """\
allow: [destructive]
tables:
  - name: market_data.events
    renames: {address.zip: postcode}
    drop_columns: [prices]
"""
_WORDS = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "#",
        "&a ",
        "*a",
        "!!int ",
        "!x ",
        "|",
    ),
    *(
        "---\n",
        "...\n",
        "<<: *a\n",
        "? ",
        "%YAML 1.1\n",
        "\u00e9",
        "\u2028",
        "\x07",
        "\ufeff",
        "\U0001f4a5",
        "~",
    ),
    *(
        "null",
        "true",
        "0",
        "-1",
        "1e999",
        ".nan",
        "9" * 60,
        "2026-01-01",
        "${tenant}",
        "`",
        "*",
        "a" * 300,
        "0x1F",
    ),
    *(
        "name",
        "type",
        "columns",
        "drop: true",
        "struct<",
        "decimal(99,99)",
        "list<",
        "day(",
        "<<<<<<< HEAD\n",
        "\x00",
    ),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        10**40,
        1.5,
        float("inf"),
        "",
        " ",
        "x",
        "a.b.c",
        "a`b",
        "ärger",
        "timestamp",
        "x" * 200,
    ),
    *(
        [],
        [None],
        [[]],
        ["x", "x"],
        {},
        {"x": None},
        {"name": "x"},
        [{"name": "x", "type": "long"}],
        {"": ""},
    ),
)


def _valid() -> dict[str, str]:
    """A project whose files say everything that can be said."""
    files = {f"migrations/{p.name}": p.read_text("utf-8") for p in (ROOT / "migrations").glob("*.yaml")}
    files["migrations/0008_wide.yaml"] = _WIDE
    files["migrations/0009_next.yaml"] = _NEXT
    files["icemigrate.yaml"] = _PROJECT
    return files


VALID = _valid()


def as_text(text: str, rng: random.Random) -> str:
    """The text after one slip."""
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    place = rng.randrange(len(text) + 1)
    end = min(len(text), place + rng.choice((1, 1, 2, 5, 40)))
    match rng.randrange(9):
        case 0:
            return "\n".join(lines[:at] + lines[at + 1 :])
        case 1:
            return "\n".join([*lines[:other], lines[at], *lines[other:]])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
            return "\n".join(lines)
        case 3:
            lines[at] = rng.choice(("  ", " ", "\t", "      ")) + lines[at]
            return "\n".join(lines)
        case 4:
            lines[at] = lines[at][rng.randrange(3) :]
            return "\n".join(lines)
        case 5:
            return text[:place] + text[end:]
        case 6:
            return text[:place] + rng.choice(_WORDS) + text[end:]
        case 7:
            return text[:place]
        case _:
            return text[:place] + rng.choice(_WORDS) + text[place:]


def as_data(text: str, rng: random.Random) -> str:
    """The text after one misunderstanding; the same where it holds no YAML to misunderstand."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
    holders = [h for h in _holders(data) if h]
    if not holders:
        return text
    holder = rng.choice(holders)
    key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    match rng.randrange(4):
        case 0:
            del holder[key]
        case 1:
            holder[key] = rng.choice(_VALUES)
        case 2 if isinstance(holder, dict):
            holder[f"{key}{rng.choice(('s', '_', 'x', ' '))}"] = holder.pop(key)
        case 2:
            holder.append(holder[key])
        case _:
            other = rng.choice(holders)
            holder[key] = rng.choice(list(other.values() if isinstance(other, dict) else other))
    # What holds itself cannot be written.
    return text if _is_circular(data) else yaml.safe_dump(data, allow_unicode=True, sort_keys=False)


def _holders(data: Any) -> list[Any]:
    found, open_ = [], [data]
    while open_:
        one = open_.pop()
        if isinstance(one, (dict, list)):
            found.append(one)
            open_.extend(one.values() if isinstance(one, dict) else one)
    return found


def _is_circular(data: Any, above: tuple[int, ...] = ()) -> bool:
    if not isinstance(data, (dict, list)):
        return False
    inside = data.values() if isinstance(data, dict) else data
    return id(data) in above or any(_is_circular(one, (*above, id(data))) for one in inside)


def checked(files: dict[str, str], *options: str) -> tuple[int, list[dict[str, Any]], dict[str, str]]:
    """The exit code, what ``check --format json`` found, and the files as they are then."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(text.encode())
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["check", "--project", name, "--format", "json", "--git-base", "none", *options])
        after = {path: (folder / path).read_bytes().decode() for path in files}
    assert code in (0, 3), err.getvalue()
    found = json.loads(out.getvalue())["diagnostics"]
    assert (code == 3) == any(d["severity"] == "error" for d in found), found
    for diagnostic in found:
        _held_to_its_place(diagnostic, after, name)
    return code, found, after


def _held_to_its_place(diagnostic: dict[str, Any], files: dict[str, str], folder: str) -> None:
    """A finding names a file that is there, and a place in it."""
    assert diagnostic["message"].strip()
    text = files[str(diagnostic["file"]).removeprefix(f"{folder}/")]
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert 1 <= diagnostic["line"] <= len(lines), diagnostic
    assert 1 <= diagnostic["column"] <= len(lines[diagnostic["line"] - 1]) + 1, diagnostic


@functools.cache
def locked() -> dict[str, str]:
    """The valid files with a lock file that fits them."""
    return checked(VALID | {LOCK: ""}, "--fix")[2]


def test_the_files_are_valid_before_anything_is_done_to_them() -> None:
    code, found, _ = checked(locked())
    assert code == 0, found


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    rng=st.randoms(use_true_random=False),
    slips=st.integers(1, 3),
    name=st.sampled_from([*sorted(VALID), LOCK]),
)
def test_a_file_that_went_wrong_is_told_with_a_place_or_passes(
    rng: random.Random, slips: int, name: str
) -> None:
    files = dict(locked())
    if name != LOCK:
        # It would be told that the lock file is stale, whatever else is not.
        del files[LOCK]
    for _ in range(slips):
        files[name] = rng.choice((as_text, as_text, as_data))(files[name], rng)
    checked(files)
