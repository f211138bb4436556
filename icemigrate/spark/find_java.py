"""Finds a Java installation that Spark supports.

The search order is ``JAVA_HOME``, the ``java`` on ``PATH``, then the usual folders of installers.  A wrong
``JAVA_HOME`` does not stop the search, because it is often set for other programs; :func:`wrong_home` reports
it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from icemigrate.errors import EngineError
from icemigrate.frozen import Frozen
from icemigrate.system.process import find_program

# Spark 4 starts its JVM with `--add-modules=jdk.incubator.vector`; a cut-down Java without it ends at once.
NEEDED_MODULE = "jdk.incubator.vector"

_USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/usr/local/openjdk*",
    "/opt/java*",
    "/opt/java/*",
    "/opt/jdk*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "~/.asdf/installs/java/*",
    "~/.local/share/mise/installs/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)

_INSTALL_LINES = (
    ("apt-get", "sudo apt-get install openjdk-{java}-jre-headless"),
    ("dnf", "sudo dnf install java-{java}-openjdk-headless"),
    ("yum", "sudo yum install java-{java}-openjdk-headless"),
    ("zypper", "sudo zypper install java-{java}-openjdk-headless"),
    ("apk", "sudo apk add openjdk{java}-jre-headless"),
    ("pacman", "sudo pacman -S jre{java}-openjdk-headless"),
    ("brew", "brew install openjdk@{java}"),
)


class JavaInstallation(Frozen):
    """A Java installation.

    :param home: the value for ``JAVA_HOME``: the folder with ``bin/java``.
    :param version: as it reports itself, e.g. ``17.0.15`` or ``1.8.0_392``.
    :param missing_modules: modules that Spark needs and this Java does not have.
    """

    home: Path
    version: str
    missing_modules: tuple[str, ...] = ()

    @property
    def major(self) -> int:
        """``17`` for ``17.0.15``, and ``8`` for ``1.8.0_392``; 0 for an unknown version."""
        numbers = [int(n) for n in re.findall(r"[0-9]+", self.version)[:2]]
        if len(numbers) == 2 and numbers[0] == 1:
            return numbers[1]
        return numbers[0] if numbers else 0

    def __str__(self) -> str:
        lacks = f", without module {', '.join(self.missing_modules)}" if self.missing_modules else ""
        return f"{self.home} (Java {self.version}{lacks})"


def find_java(
    wanted: tuple[int, ...],
    environ: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = _USUAL_FOLDERS,
) -> JavaInstallation:
    """The Java to start Spark with.

    :param wanted: supported major versions, the preferred one first; the preference decides among the usual
        folders, while ``JAVA_HOME`` and ``PATH`` are the user's choice and come before it.
    :param environ: the process environment; by default ``os.environ``.
    :param folders: glob patterns of the usual folders.
    :raises EngineError: there is none, or none of a supported version; the message lists those that were
        found.
    """
    environ = os.environ if environ is None else environ
    seen: dict[Path, JavaInstallation] = {}
    for java in _chosen_by_user(environ):
        if _fits(java, wanted):
            return java
        seen.setdefault(java.home, java)
    installed = list(_installed(folders))
    for major in wanted:
        for java in installed:
            if java.major == major and _fits(java, wanted):
                return java
    for java in installed:
        seen.setdefault(java.home, java)
    raise EngineError(_none_message(wanted, seen, environ), install_hint(wanted[0]))


def wrong_home(wanted: tuple[int, ...], environ: Mapping[str, str] | None = None) -> str | None:
    """Why the search does not use ``JAVA_HOME``; ``None`` where it does, or where it is not set.

    :param wanted: supported major versions.
    :param environ: the process environment; by default ``os.environ``.
    """
    named = _java_home(os.environ if environ is None else environ)
    if named is None:
        return None
    home = Path(named).expanduser()
    java, program = inspect_java_home(home), _binary(home)
    if java is not None:
        lacks = f" without the module {', '.join(java.missing_modules)}" if java.missing_modules else ""
        wrong = f"which is Java {java.version}{lacks}"
        return None if _fits(java, wanted) else f"JAVA_HOME is {named}, {wrong}"
    if not home.is_dir():
        wrong = "which is not a folder" if home.exists() else "which does not exist"
    else:
        name = program.relative_to(home)
        wrong = f"whose {name} does not report a version" if program.is_file() else f"which has no {name}"
    return f"JAVA_HOME is {named}, {wrong}"


def home_hint(wanted: tuple[int, ...]) -> str:
    """A hint about a wrong ``JAVA_HOME``."""
    return f"unset JAVA_HOME, or set it to the folder of Java {_versions(wanted)}"


def inspect_java_home(home: Path) -> JavaInstallation | None:
    """The Java in a folder; ``None`` where the folder contains none that runs.

    The ``release`` file is read first, because starting a JVM takes a good part of a second.
    """
    binary = _binary(home)
    if not binary.is_file():
        return None
    facts = _release_file(home / "release")
    if "JAVA_VERSION" in facts:
        modules = facts.get("MODULES", "").split()
        lacks = (NEEDED_MODULE,) if modules and NEEDED_MODULE not in modules else ()
        return JavaInstallation(home, facts["JAVA_VERSION"], lacks)
    return _ask(binary)


def install_hint(major: int) -> str:
    """One line that installs Java with the package manager that this machine has."""
    lines = _INSTALL_LINES if sys.platform != "darwin" else _INSTALL_LINES[::-1]
    for command, line in lines:
        if find_program(command):
            return f"{line.format(java=major)}   (or set JAVA_HOME to an installed one)"
    return f"install a Java {major} runtime and set JAVA_HOME to its folder"


def _binary(home: Path) -> Path:
    return home / "bin" / ("java.exe" if os.name == "nt" else "java")


def _java_home(environ: Mapping[str, str]) -> str | None:
    return environ.get("JAVA_HOME", "").strip() or None


def _versions(wanted: tuple[int, ...]) -> str:
    return " or ".join(map(str, sorted(wanted)))


def _fits(java: JavaInstallation, wanted: tuple[int, ...]) -> bool:
    return java.major in wanted and not java.missing_modules


def _chosen_by_user(environ: Mapping[str, str]) -> Iterator[JavaInstallation]:
    home = _java_home(environ)
    if home is not None and (java := inspect_java_home(Path(home).expanduser())):
        yield java
    on_path = find_program("java", environ)
    if on_path:
        resolved = Path(on_path).resolve()
        # A version manager's shim is not inside a Java home: the JVM itself reports its home.
        if java := inspect_java_home(resolved.parent.parent) or _ask(Path(on_path)):
            yield java


def _installed(folders: tuple[str, ...]) -> Iterator[JavaInstallation]:
    visited: set[Path] = set()
    for pattern in folders:
        root = Path(pattern).expanduser()
        anchor = Path(root.anchor)
        for home in sorted(anchor.glob(str(root.relative_to(anchor)))):
            real = home.resolve()
            if real in visited:
                continue
            visited.add(real)
            if java := inspect_java_home(home):
                yield java


def _release_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))


def _ask(binary: Path) -> JavaInstallation | None:
    try:
        answer = subprocess.run(
            [str(binary), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    facts = dict(re.findall(r"^\s*(java\.home|java\.version) = (.*?)\s*$", answer.stderr, re.MULTILINE))
    if answer.returncode != 0 or len(facts) != 2:
        return None
    return JavaInstallation(Path(facts["java.home"]), facts["java.version"])


def _none_message(
    wanted: tuple[int, ...], seen: Mapping[Path, JavaInstallation], environ: Mapping[str, str]
) -> str:
    need = f"Spark needs Java {_versions(wanted)}"
    wrong = wrong_home(wanted, environ)
    note = "" if wrong is None else f" ({wrong})"
    if not seen:
        return f"{need}, but no Java was found{note}"
    listed = "".join(f"\n  {java}" for java in seen.values())
    return f"{need}, but only these were found{note}:{listed}"
