"""What is read from a Git repository, by the `git` program; nothing is ever written.

This module alone starts `git`.  Folders of a checked-out repository may hold other repositories (``HEAD``,
``objects``, ``refs``, ``config``) whose configuration names programs.  So `git` is started at the top of the
project's own repository, which is found here by its ``.git``, and looks for no other one.  The configuration
of that repository is the user's; whatever it says, `git` fetches nothing, runs no hook and no monitor of
files, and asks no question.

Paths are bytes to Git and stay what they are: listings are asked for with NUL between names.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from icemigrate.errors import GitError, os_error_reason
from icemigrate.frozen import Frozen
from icemigrate.system.file_reads import open_regular
from icemigrate.system.process import find_program, search_path
from icemigrate.system.repository_boundary import GIT_FOLDER, repository_top, resolve_inside

_FROM_OUTSIDE = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXTERNAL_DIFF",
        "GIT_PROXY_COMMAND",
    }
)
"""Variables that Git sets for its hooks, and others that name a program or another repository."""
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_PAGER": "cat",
    # Missing objects of a partial clone stay missing: fetching would start `ssh`, or a program of the
    # configuration.
    "GIT_NO_LAZY_FETCH": "1",
    # For a Git that does not know the variable above; it overrides all of `protocol.*`.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_CONFIGURATION = (
    "safe.bareRepository=explicit",
    "protocol.allow=never",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.pager=cat",
    "core.quotePath=false",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
)
_LONGEST_LINK = 4096
_LINK = re.compile(r"gitdir: (?P<path>[^\0\n]+)\n?")
_BLOB_MODES = frozenset({b"100644", b"100755", b"100664"})
FETCH_HINT = (
    "fetch the full history with its files: `fetch-depth: 0` and no `filter` for "
    "actions/checkout, `GIT_DEPTH: 0` for GitLab CI"
)
"""What to do where the history was cloned in part."""
_TIMEOUT = 120
"""Seconds."""


class GitRepository(Frozen):
    """The repository of a folder; a worktree or a submodule is its own repository.

    :param top: the folder with ``.git``, without links in it.
    :param prefix: the folder's path inside it, with ``/`` at its end; empty for the root.
    """

    top: Path
    prefix: str

    def commit(self, ref: str) -> str | None:
        """The commit of a branch, tag or hash; ``None`` where it does not exist here."""
        if ref.startswith("-") or not ref or "\0" in ref:
            return None
        ran = _git(self.top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        return ran.stdout.decode().strip() if ran.returncode == 0 else None

    def merge_base(self, one: str, other: str) -> str | None:
        """The merge base of two commits; ``None`` where the history that exists here does not show it."""
        ran = _git(self.top, "merge-base", one, other)
        return ran.stdout.decode().split("\n")[0] if ran.returncode == 0 and ran.stdout else None

    def symbolic(self, ref: str) -> str | None:
        """The branch of a symbolic name such as ``HEAD``, in short form; ``None`` without one."""
        ran = _git(self.top, "symbolic-ref", "--quiet", "--short", ref)
        return os.fsdecode(ran.stdout).strip() if ran.returncode == 0 else None

    def remote_url(self, remote: str) -> str | None:
        """The address of a remote; ``None`` without one."""
        ran = _git(self.top, "config", "--local", "--get", f"remote.{remote}.url")
        return os.fsdecode(ran.stdout).strip() if ran.returncode == 0 else None

    @property
    def is_shallow(self) -> bool:
        """Whether only the newest part of the history was cloned."""
        return _git(self.top, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"

    def files(self, commit: str) -> dict[str, str]:
        """The files directly in this folder at a commit: name → object; empty where it has no such folder.

        :raises GitError: Git fails.
        """
        inside = self.prefix.rstrip("/")
        tree = f"{commit}:{inside}"
        if inside and _git(self.top, "cat-file", "-e", tree).returncode != 0:
            return {}
        ran = _git(self.top, "ls-tree", "-z", "--full-tree", tree)
        _require(ran, f"git cannot list `{inside or '.'}` at {commit[:12]}")
        found = {}
        for entry in ran.stdout.split(b"\0"):
            head, _, name = entry.partition(b"\t")
            if name and (parts := head.split())[0] in _BLOB_MODES:
                found[os.fsdecode(name)] = parts[2].decode()
        return found

    def additions(self, commit: str, names: Iterable[str]) -> dict[str, bool]:
        """The files that this folder has at a commit, in the order in which they were added.

        The history is that of first parents: a file of a merged branch counts at the merge.

        :returns: by the file's name, whether a merge added it.
        :raises GitError: Git fails.
        """
        there = self.files(commit)
        wanted = [name for name in names if name in there]
        if not wanted:
            return {}
        paths = [f":(top,literal){self.prefix}{name}" for name in wanted]
        options = ("--first-parent", "-m", "--no-renames", "--diff-filter=A", "--name-only")
        ran = _git(self.top, "log", *options, "--format=%x00%P", commit, "--", *paths)
        _require(ran, f"git cannot read the history of {commit[:12]}")
        found: dict[str, bool] = {}
        for entry in ran.stdout.split(b"\0")[1:]:
            parents, *lines = entry.split(b"\n")
            for line in sorted(filter(None, lines), reverse=True):
                found[os.fsdecode(line).removeprefix(self.prefix)] = len(parents.split()) > 1
        oldest_first = {name: found[name] for name in reversed(found) if name in wanted}
        # The start of a shallow history adds nothing, and Git quotes unusual names.
        return {name: False for name in wanted if name not in oldest_first} | oldest_first

    def contents(self, objects: Iterable[str]) -> dict[str, bytes]:
        """The committed content of objects.

        :raises GitError: one of them is not available.
        """
        wanted = list(dict.fromkeys(objects))
        if not wanted:
            return {}
        ran = _git(self.top, "cat-file", "--batch", given="".join(f"{name}\n" for name in wanted).encode())
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


def open_repository(folder: Path, top: Path) -> GitRepository:
    """The repository of a folder.

    :param top: the root of the project's repository, which must contain the folder.
    :raises GitError: there is no `git` here, or the folder is in no repository that it reads.
    """
    try:
        real = resolve_inside(folder, top)
        # The folder may belong to a submodule, whose root is nearer.
        nearest = repository_top(real)
        _require_git_folder(nearest)
    except OSError as error:
        raise GitError(f"`{folder}` is not in a readable Git repository: {os_error_reason(error)}") from error
    ran = _git(nearest, "rev-parse", "--is-inside-work-tree", "--show-toplevel")
    lines = os.fsdecode(ran.stdout).split("\n")
    if ran.returncode != 0 or lines[0] != "true":
        said = ran.stderr.decode(errors="replace").strip().split("\n")[0].removeprefix("fatal: ")
        raise GitError(f"`{folder}` is not in a readable Git repository: {said or 'it has no files'}")
    if Path(os.path.realpath(lines[1])) != nearest:
        raise GitError(f"`{folder}` is not in a readable Git repository: its files are in `{lines[1]}`")
    prefix = real.relative_to(nearest).as_posix()
    return GitRepository(nearest, "" if prefix == "." else f"{prefix}/")


def _require_git_folder(top: Path) -> None:
    """Refuse a folder without ``.git``, and a ``.git`` that leads to files of a repository.

    A worktree and a submodule have a file called ``.git``, which leads into the ``.git`` of another folder.

    :raises OSError: the folder has no ``.git`` of its own.
    """
    git = top / GIT_FOLDER
    if not os.path.lexists(git):
        raise OSError(0, "not a git repository")
    where = git
    if git.is_file():
        with open_regular(git) as stream:
            found = _LINK.fullmatch(os.fsdecode(stream.read(_LONGEST_LINK)))
        if found is None:
            raise OSError(0, f"`{git}` is not a file that Git wrote")
        where = top / found["path"].rstrip("\r")
    real = Path(os.path.realpath(where))
    # Git itself created everything inside a `.git`; a commit cannot contain such a folder.
    if any(part == GIT_FOLDER for part in real.parts):
        return
    if os.path.lexists(repository_top(real) / GIT_FOLDER) or real.is_relative_to(top):
        raise OSError(0, f"`{git}` points to `{real}`, which is among the files of a repository")


def _require(ran: subprocess.CompletedProcess[bytes], what: str) -> None:
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().split("\n")[0].removeprefix("fatal: ")
        raise GitError(f"{what}: {said}", FETCH_HINT)


def _git(top: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = find_program("git", outside=top)
    if program is None:
        raise GitError(
            "cannot find `git` on the path", "install Git, or turn the comparison off with `--git-base none`"
        )
    environment = {name: value for name, value in os.environ.items() if name not in _FROM_OUTSIDE}
    # Folders above the root are not searched.
    environment |= _ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(top.parent)}
    environment["PATH"] = search_path(outside=top)
    settings = [part for one in _CONFIGURATION for part in ("-c", one)]
    try:
        return subprocess.run(
            [program, "--no-pager", "-C", str(top), *settings, *arguments],
            cwd="/",
            input=given,
            capture_output=True,
            env=environment,
            timeout=_TIMEOUT,
            check=False,
        )
    except OSError as error:
        raise GitError(f"`git` cannot be run: {os_error_reason(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"`git {arguments[0]}` did not answer within {_TIMEOUT} seconds") from error
