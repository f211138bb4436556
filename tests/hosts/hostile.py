"""A repository that tries to execute code, and to have files read and written that lie outside of it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.hosts.projects import FIRST, SECOND, commit, git

SECRET = "kept-outside-4711"
"""What stands in every file outside, and may be in no output."""
_ABSENT = "1234567890123456789012345678901234567890"
_MODULES = (
    "yaml",
    "click",
    "msgspec",
    "deepdiff",
    "sqlglot",
    "pyspark",
    "pyiceberg",
    "pip",
    "venv",
    "setuptools",
)
_STARTUP = ("sitecustomize", "usercustomize", "conftest", "setup", "noxfile")


@dataclass
class Hostile:
    """The repository, and what it aims at.

    :param top: its working tree.
    :param outside: a folder with files that must neither be read nor written.
    :param marks: what every trick that executes something appends its name to.
    """

    top: Path
    outside: Path
    marks: Path

    @property
    def migrations(self) -> Path:
        """The folder of migrations."""
        return self.top / "migrations"

    def executed(self) -> list[str]:
        """The tricks that were executed."""
        return self.marks.read_text(encoding="utf-8").splitlines() if self.marks.exists() else []

    def mark(self, trick: str) -> str:
        """A line of shell that tells of a trick."""
        return f"echo '{trick}' >> '{self.marks}'"

    def write(self, name: str, text: str) -> Path:
        """A file of the repository."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def program(self, name: str) -> None:
        """A program of the repository that tells when it is started."""
        self.write(name, f"#!/bin/sh\n{self.mark(name)}\n").chmod(0o755)

    def link(self, name: str, target: str | Path) -> None:
        """A link of the repository."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def state_outside(self) -> dict[str, tuple[int, bytes]]:
        """Every file outside, with its time and its content."""
        return {
            str(path.relative_to(self.outside)): (
                path.stat().st_mtime_ns,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.outside.rglob("*"))
        }


def repository(folder: Path) -> Hostile:
    """A sound project whose last commit drops a column, so that every comparison has something to ask Git."""
    top, outside = folder / "workspace", folder / "outside"
    (outside / "folder").mkdir(parents=True)
    for name in ("secret.yaml", "secret.sql", "target", "folder/secret.sql", "folder/sources.yml"):
        (outside / name).write_text(f"{SECRET}: [\nselect note from shop.orders; -- {SECRET}\n")
    made = Hostile(top, outside, folder / "marks")
    made.write("icemigrate.yaml", "project: lake\nimpact: [models]\n")
    made.write("migrations/0001_create.yaml", FIRST)
    made.write("models/orders.sql", "select id, note from shop.orders")
    git(top, "init", "--quiet")
    commit(top, "before")
    git(top, "update-ref", "refs/remotes/origin/main", "HEAD")
    made.write("migrations/0002_drop.yaml", "allow: [destructive]\n" + SECOND)
    commit(top, "after")
    return made


def add_code(made: Hostile) -> None:
    """Everything that might be executed."""
    for folder in ("", "migrations/", "models/", "migrations/deep/er/"):
        _add_bare_repository(made, folder)
    _add_modules(made)
    _add_settings(made)
    _add_programs(made)
    _add_dbt(made)


def _add_bare_repository(made: Hostile, folder: str) -> None:
    """A repository of its own without a working tree, as `git` finds it when it is started in this folder."""
    run = made.top.parent / f"run-{len(list(made.top.parent.glob('run-*')))}"
    run.write_text(f"#!/bin/sh\n{made.mark('git in ' + (folder or 'the top'))}\nexit 1\n")
    run.chmod(0o755)
    made.write(f"{folder}HEAD", "ref: refs/heads/main\n")
    for ref in ("heads/main", "remotes/origin/main", "remotes/origin/HEAD", "heads/master"):
        made.write(f"{folder}refs/{ref}", f"{_ABSENT}\n")
    made.write(f"{folder}objects/info/alternates", f"{made.outside}\n")
    made.write(f"{folder}hooks/post-index-change", run.read_text()).chmod(0o755)
    made.write(
        f"{folder}config",
        f"""\
[core]
    repositoryformatversion = 1
    bare = false
    worktree = {made.top}
    sshCommand = {run}
    fsmonitor = {run}
    hooksPath = {made.top / folder / "hooks"}
    pager = {run}
    alternateRefsCommand = {run}
    askPass = {run}
[extensions]
    partialClone = origin
    worktreeConfig = true
[remote "origin"]
    url = ssh://git.example.invalid/x
    promisor = true
    uploadpack = {run}
[include]
    path = more
[diff "evil"]
    command = {run}
    textconv = {run}
[filter "evil"]
    smudge = {run}
    clean = {run}
[protocol]
    allow = always
[credential]
    helper = !{run}
[alias]
    rev-parse = !{run}
""",
    )
    made.write(f"{folder}more", f"[core]\n    fsmonitor = {run}\n    sshCommand = {run}\n")
    made.write(f"{folder}.gitattributes", "* filter=evil diff=evil\n")


def _add_modules(made: Hostile) -> None:
    """Modules that Python would import if the working directory were on its path."""
    body = f"open({str(made.marks)!r}, 'a').write(__name__ + '\\n')\n"
    for name in (*sys.stdlib_module_names, *_MODULES, *_STARTUP):
        if "." not in name:
            made.write(f"{name}.py", body)
    for name in (
        "icemigrate/__init__.py",
        "icemigrate/cli/__init__.py",
        "icemigrate/spark/class_archive_creator.py",
    ):
        made.write(name, body)
    made.write("evil.pth", f"import os; os.system({made.mark('pth')!r})\n")


def _add_settings(made: Hostile) -> None:
    """Settings of tools that name code."""
    made.write(
        "pyproject.toml", '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
    )
    made.write("setup.cfg", "[tool:pytest]\naddopts = -p conftest\n[options]\nsetup_requires = evil\n")
    made.write(".env", f"PYTHONPATH=.\nBASH_ENV=env.sh\nICEMIGRATE_PROJECT={made.outside}/secret.yaml\n")
    made.write("env.sh", made.mark("env.sh") + "\n")
    made.write(
        ".pyiceberg.yaml",
        "catalog:\n  local: {py-catalog-impl: setup.Catalog, py-io-impl: setup.IO, uri: http://127.0.0.1:9}\n",
    )
    made.write(".gitmodules", '[submodule "x"]\n  path = models\n  url = ./.\n  update = !sh env.sh\n')
    made.write(".gitconfig", f"[core]\n  fsmonitor = {made.top}/git\n")
    made.write("conf/spark-env.sh", made.mark("spark-env.sh") + "\n")
    made.write("conf/spark-defaults.conf", "spark.driver.extraJavaOptions -agentpath:evil\n")
    made.write(".hotspotrc", "+ShowMessageBoxOnError\n")
    made.write("pip.conf", "[global]\nindex-url = http://127.0.0.1:9/\n")


def _add_programs(made: Hostile) -> None:
    """Programs that are started if the working directory is on `PATH`, or is taken for an installation."""
    for name in (
        "git",
        "java",
        "python",
        "python3",
        "gh",
        "dbt",
        "sh",
        "bin/git",
        "bin/spark-submit",
        "bin/java",
    ):
        made.program(name)
    (made.top / "jars").mkdir()
    made.program(".githooks/pre-commit")


def _add_dbt(made: Hostile) -> None:
    """Templates that a rendering would execute."""
    sentence = (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}{% include '"
        + str(made.outside / "secret.sql")
        + "' %}"
    )
    run = '{{ cycler.__init__.__globals__.os.system("' + made.mark("jinja") + '") }}'
    made.write(
        "dbt_project.yml", f"name: x\non-run-start: ['{{{{ run() }}}}']\nmacro-paths: [{made.outside}]\n"
    )
    made.write(
        "models/evil.sql",
        f"{run}{sentence}{{% do run_query('x') %}}select note from {{{{ source('a', 'b') }}}}",
    )
    made.write(
        "models/sources.yml",
        "sources: !!python/object/apply:os.system ['" + f"echo yaml >> {made.marks}" + "']\n",
    )
    made.write("macros/evil.sql", "{% macro ref(x) %}" + run + "{% endmacro %}")
    made.write(
        "models/job.py",
        f"import os\nos.system({made.mark('job.py')!r})\nspark.sql('select note from shop.orders')\n",
    )


def add_links(made: Hostile) -> None:
    """Links and special files in the place of everything that is read."""
    out = made.outside
    made.link("migrations/0003_secret.yaml", out / "secret.yaml")
    made.link("migrations/0004_relative.yaml", Path("..", "..", "outside", "secret.yaml"))
    made.link("migrations/0005_git.yaml", Path("..", ".git", "config"))
    made.link("migrations/0006_loop.yaml", "0006_loop.yaml")
    made.link("migrations/0007_device.yaml", "/dev/zero")
    made.link("migrations/0008_folder.yaml", out / "folder")
    os.mkfifo(made.migrations / "0009_pipe.yaml")
    (made.migrations / "0010_folder.yaml").mkdir()
    made.link("migrations/0011_through.yaml", Path("through", "secret.yaml"))
    made.link("migrations/through", out)
    made.link("migrations/icemigrate.lock", out / "target")
    made.link("models/secret.sql", out / "secret.sql")
    made.link("models/outside", out)
    made.link("models/loop", "..")
    made.link("models/loops/a", "..")
    made.link("models/loops/b", "..")
    made.link("models/sources.yml", out / "folder" / "sources.yml")
    os.mkfifo(made.top / "models" / "pipe.sql")
    impact = (
        "/",
        "'/**/*.sql'",
        "../outside",
        "'../**'",
        "models",
        "'models/**/*.sql'",
        ".git",
        "models/outside",
    )
    named = ", ".join((*impact, "models/secret.sql", f"{out}/secret.sql"))
    made.write("icemigrate.yaml", f"project: lake\nimpact: [{named}]\n")


def add_written_links(made: Hostile) -> None:
    """Links in the place of everything that is written."""
    out = made.outside
    made.link("migrations/icemigrate.lock", out / "target")
    made.link(".icemigrate", out / "folder")
    for name in (
        "check.json",
        "check.md",
        "icemigrate-check.md",
        "icemigrate-quality.json",
        "icemigrate-check.xml",
    ):
        made.link(name, out / "target")
    made.link("reports", out / "folder")


def add_folder_links(made: Hostile) -> None:
    """Links in the place of the folders that `init` and `new` write to."""
    shutil.rmtree(made.migrations)
    (made.top / "icemigrate.yaml").unlink()
    for name in ("migrations", "schemas", ".github", ".icemigrate"):
        made.link(name, made.outside / "folder")
