"""Lines that a reader of the documentation types elsewhere: what they name must exist."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import click

from icemigrate.cli.group import COMMANDS, LEAF_COMMANDS, command_of

ROOT = Path(__file__).resolve().parents[2]


def check_line(line: str) -> None:
    """Refuse a line whose target, extra, command or option there is not."""
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if not words:
        return
    checks = {
        "make": _make,
        "pip": _pip,
        "icemigrate": _icemigrate,
        "git": _git,
        ".": _script,
        "python": _module,
    }
    assert words[0] in checks, f"nobody checks `{line}`"
    checks[words[0]](words[1:])


def _make(targets: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"no target `{target}`"


def _pip(words: list[str]) -> None:
    assert words[0] == "install", words
    extras = _extras()
    for word in words[1:]:
        found = re.fullmatch(r"(?:icemigrate|\.)(?:\[([\w,]+)\])?", word)
        assert found or word in ("-e", "./rust/python"), f"what is `{word}`?"
        if found and found[1]:
            assert set(found[1].split(",")) <= extras, f"no extra `{found[1]}`"


def _extras() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return set(parser["options.extras_require"])


def _icemigrate(words: list[str]) -> None:
    command, words = (" ".join(words[:2]), words[1:]) if words[0] == "table" else (words[0], words)
    assert command in COMMANDS or command in LEAF_COMMANDS, f"no command `{command}`"
    parameters = command_of(command).params
    known = {name for p in parameters if isinstance(p, click.Option) for name in p.opts}
    for word in words[1:]:
        assert not word.startswith("-") or word.split("=")[0] in known, f"`{command}` has no option `{word}`"


def _git(words: list[str]) -> None:
    assert words[0] in ("clone", "push", "fetch", "switch"), words


def _script(words: list[str]) -> None:
    assert words == [".venv/bin/activate"], words


def _module(words: list[str]) -> None:
    assert words[0] == "-m", words
    assert ROOT.joinpath(*words[1].split(".")).with_suffix(".py").is_file(), words
