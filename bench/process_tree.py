"""What a process and its descendants take, such as a JVM and the Python processes of Spark."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_S = 0.25


@dataclass(frozen=True, slots=True)
class TreeCost:
    """What a process and its descendants took.

    :param seconds: by the clock.
    :param cpu_seconds: of all processes; what one of them did in its last quarter of a second is not counted.
    :param megabytes: the peak of their memory together, shared pages counted once.
    :param output: of the process.
    """

    seconds: float
    cpu_seconds: float
    megabytes: float
    output: str


def measure_tree(command: Sequence[str], cwd: Path) -> TreeCost:
    """Run a program.

    :raises subprocess.CalledProcessError: it failed.
    """
    began, cpu, peak = time.monotonic(), dict[int, float](), 0.0
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        found = list[tuple[str, str]]()
        reader = threading.Thread(target=lambda: found.append(ran.communicate()))
        reader.start()
        while reader.is_alive():
            used, megabytes = _sample(ran.pid)
            cpu |= used
            peak = max(peak, megabytes)
            reader.join(_SAMPLE_S)
    ((output, errors),) = found
    if ran.returncode:
        raise subprocess.CalledProcessError(ran.returncode, list(command), output, errors)
    return TreeCost(time.monotonic() - began, sum(cpu.values()), peak, output)


def memory_by_program(root: int) -> dict[str, float]:
    """The memory of a process and its descendants in megabytes, by the name of their programs.

    Processes of Python are ``python``, whatever the name of the interpreter.
    """
    found = dict[str, float]()
    for pid in _tree(root):
        try:
            program = Path(f"/proc/{pid}/exe").resolve().name
        except OSError:
            continue
        name = "python" if program.startswith("python") else program
        found[name] = found.get(name, 0.0) + _megabytes(pid)
    return found


def _sample(root: int) -> tuple[dict[int, float], float]:
    """CPU seconds by process, and the memory of all of them in megabytes."""
    seconds = _tree(root)
    return seconds, sum(map(_megabytes, seconds))


def _tree(root: int) -> dict[int, float]:
    """The CPU seconds of a process and its descendants."""
    stats = dict[int, tuple[int, float]]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            # The parent, and the time in the process and in the kernel.
            stats[int(folder.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS)
    tree = {root} & stats.keys()
    while below := {pid for pid, (parent, _) in stats.items() if parent in tree} - tree:
        tree |= below
    return {pid: stats[pid][1] for pid in tree}


def _megabytes(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
