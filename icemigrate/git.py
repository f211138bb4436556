"""What is read from a Git repository, by the `git` program; nothing is ever written.

Paths are bytes to Git and stay what they are: listings are asked for with NUL between names.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from icemigrate.errors import GitError, why
from icemigrate.frozen import Frozen

_OF_A_HOOK = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})
"""What Git sets for its hooks: paths that hold for the hook's own folder, not for the one we ask about."""
_BLOB_MODES = frozenset({b"100644", b"100755", b"100664"})
FETCH_HINT = "fetch the whole history: `fetch-depth: 0` of actions/checkout, `GIT_DEPTH: 0` of GitLab CI"
"""What to do where the history was cloned in part."""
_TIMEOUT = 120
"""Seconds; a partial clone may have to fetch what is asked for."""


class Repository(Frozen):
    """The repository that a folder belongs to; a worktree or a submodule is one of its own.

    :param prefix: the folder's path inside it, with ``/`` at its end; empty for the top.
    """

    folder: Path
    prefix: str

    def commit(self, ref: str) -> str | None:
        """The commit that a branch, tag or hash names; ``None`` where there is none of it here."""
        if ref.startswith("-") or not ref or "\0" in ref:
            return None
        ran = _git(self.folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        return ran.stdout.decode().strip() if ran.returncode == 0 else None

    def merge_base(self, one: str, other: str) -> str | None:
        """The commit at which two parted; ``None`` where the history that is here does not tell."""
        ran = _git(self.folder, "merge-base", one, other)
        return ran.stdout.decode().split("\n")[0] if ran.returncode == 0 and ran.stdout else None

    def symbolic(self, ref: str) -> str | None:
        """The branch that a name such as ``HEAD`` stands for, in short; ``None`` where it stands for none."""
        ran = _git(self.folder, "symbolic-ref", "--quiet", "--short", ref)
        return os.fsdecode(ran.stdout).strip() if ran.returncode == 0 else None

    @property
    def is_shallow(self) -> bool:
        """Whether only the newest part of the history was cloned."""
        return _git(self.folder, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"

    def files(self, commit: str) -> dict[str, str]:
        """The files right in this folder at a commit: name → object; none where it has no such folder.

        :raises GitError: Git fails.
        """
        inside = self.prefix.rstrip("/")
        tree = f"{commit}:{inside}"
        if inside and _git(self.folder, "cat-file", "-e", tree).returncode != 0:
            return {}
        ran = _git(self.folder, "ls-tree", "-z", "--full-tree", tree)
        _require(ran, f"git cannot list `{inside or '.'}` at {commit[:12]}")
        found = {}
        for entry in ran.stdout.split(b"\0"):
            head, _, name = entry.partition(b"\t")
            if name and (parts := head.split())[0] in _BLOB_MODES:
                found[os.fsdecode(name)] = parts[2].decode()
        return found

    def contents(self, objects: Iterable[str]) -> dict[str, bytes]:
        """What objects hold, as it was committed.

        :raises GitError: one of them cannot be had.
        """
        wanted = list(dict.fromkeys(objects))
        if not wanted:
            return {}
        ran = _git(self.folder, "cat-file", "--batch", given="".join(f"{name}\n" for name in wanted).encode())
        _require(ran, "git cannot read files of the base")
        found, at = {}, 0
        for name in wanted:
            end = ran.stdout.index(b"\n", at)
            head = ran.stdout[at:end].split()
            if len(head) != 3:
                raise GitError(f"git does not have {name[:12]}, a file of the base", FETCH_HINT)
            size = int(head[2])
            found[name] = ran.stdout[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return found


def open_repository(folder: Path) -> Repository:
    """The repository that holds a folder.

    :raises GitError: there is no `git` here, or the folder is in no repository that it will read.
    """
    ran = _git(folder, "rev-parse", "--is-inside-work-tree", "--show-prefix")
    lines = os.fsdecode(ran.stdout).split("\n")
    if ran.returncode != 0 or lines[0] != "true":
        said = ran.stderr.decode(errors="replace").strip().split("\n")[0].removeprefix("fatal: ")
        raise GitError(f"`{folder}` is in no Git repository that can be read: {said or 'it has no files'}")
    return Repository(folder, lines[1])


def _require(ran: subprocess.CompletedProcess[bytes], what: str) -> None:
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().split("\n")[0].removeprefix("fatal: ")
        raise GitError(f"{what}: {said}", FETCH_HINT)


def _git(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=given,
            capture_output=True,
            env=environment,
            timeout=_TIMEOUT,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError("there is no `git` on the path", "install it, or compare with nothing") from error
    except OSError as error:
        raise GitError(f"`git` cannot be run: {why(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"`git {arguments[0]}` did not answer within {_TIMEOUT} seconds") from error
