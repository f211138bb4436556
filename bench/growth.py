"""How the cost of commands grows with the size of a project: CPU time and memory at two or three sizes.

``python -m bench.growth`` prints, for each work and size, the CPU seconds, the elapsed seconds and the peak
memory of one process, and then the exponent of the growth between the two largest sizes: 1 is linear, 2 is
quadratic.  What every process takes for its start is subtracted first.  ``--list`` names the works.  The last
one, the versions of a growing table, has lines of its own (:mod:`bench.growing_table`).
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

from bench import check_speed, growing_table, many_changes, project, replay_speed

_COMMAND = "import sys; from icemigrate.cli import main; sys.exit(main(sys.argv[1:]))"
_APPLY = ("apply", "-q", "--apply-with", "metadata", "--auto-approve")
_ROUND_TRIP_MS = 50
_MOST_EXPONENT = 1.1
_VERSIONS = 500


@dataclass(frozen=True, slots=True)
class Work:
    """One command on projects of several sizes.

    :param make: makes the project of one size in a folder.
    :param sizes: in rising order.
    :param goal_s: the CPU seconds at the largest size.
    :param goal_mb: the peak memory at the largest size; ``None`` for no goal.
    :param status: the exit code of the command.
    :param is_remote: whether the catalog is a REST catalog behind a network.
    :param goal_elapsed_s: the elapsed seconds at the largest size; ``None`` for no goal.
    :param is_repeatable: whether the command leaves the project as it is; otherwise each round has its own.
    """

    make: Callable[[Path, int], object]
    command: tuple[str, ...]
    sizes: tuple[int, ...]
    goal_s: float
    goal_mb: float | None = None
    status: int = 0
    is_remote: bool = False
    goal_elapsed_s: float | None = None
    is_repeatable: bool = True

    def missed(self, cost: Cost) -> list[str]:
        """The goals that the largest size misses."""
        goals = (
            ("CPU", cost.cpu_s, self.goal_s, "s"),
            ("elapsed", cost.elapsed_s, self.goal_elapsed_s, "s"),
            ("memory", cost.peak_mb, self.goal_mb, "MB"),
        )
        return [
            f"{what} {found:.2f} {unit}, goal {goal} {unit}"
            for what, found, goal, unit in goals
            if goal is not None and found > goal
        ]


@dataclass(frozen=True, slots=True)
class Cost:
    """One process: CPU and elapsed time in seconds, peak memory in megabytes."""

    cpu_s: float
    elapsed_s: float
    peak_mb: float


def _files(folder: Path, files: int) -> None:
    """Files for more tables, in the same proportion."""
    check_speed.make(folder, max(2, files), max(3, files * 3 // 2))


def _match_files(folder: Path, tables: int, files: int = 100) -> None:
    """Files that create tables, and files with patterns that change all of them."""
    (folder / "migrations").mkdir(parents=True)
    (folder / "icemigrate.yaml").write_text("project: bench\n", encoding="utf-8")
    columns = "".join(f"      - {{name: c{n}, type: long}}\n" for n in range(20))
    create = "".join(f"  - name: bench.t{n}\n    columns:\n{columns}" for n in range(tables))
    texts = [f"namespaces: [bench]\ntables:\n{create}"]
    texts += [
        f"tables:\n  - match: bench.*\n    properties: {{write.target-file-size-bytes: {n << 20}}}\n"
        for n in range(1, files)
    ]
    for number, text in enumerate(texts, start=1):
        (folder / "migrations" / f"{number:04}_step.yaml").write_text(text, encoding="utf-8")


def _steps(folder: Path, migrations: int, sql: str | None = None) -> None:
    """Migrations of one table, each of which adds a column."""
    replay_speed.make(folder, migrations, "add")
    if sql is not None:
        (folder / "icemigrate.yaml").write_text("project: bench\nimpact: [sql]\n", encoding="utf-8")
        (folder / "sql").mkdir()
        (folder / "sql" / "report.sql").write_text(sql, encoding="utf-8")


def _created(folder: Path, tables: int) -> None:
    """Tables that one migration created, and a migration that changes all of them."""
    (folder / "migrations").mkdir(parents=True)
    (folder / "icemigrate.yaml").write_text("project: bench\n", encoding="utf-8")
    columns = "".join(f"      - {{name: c{n}, type: long}}\n" for n in range(20))
    create = "".join(f"  - name: bench.t{n}\n    columns:\n{columns}" for n in range(tables))
    first, second = folder / "migrations" / "0001_make.yaml", folder / "migrations" / "0002_add.yaml"
    first.write_text(f"namespaces: [bench]\ntables:\n{create}", encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", _COMMAND, *_APPLY], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    second.write_text(
        "tables:\n  - {match: 'bench.*', columns: [{name: added, type: long}]}\n", encoding="utf-8"
    )


def _wide_table(folder: Path, columns: int) -> None:
    fields = [*many_changes.columns(columns)]
    project.make(folder, 1, fields, pending=None, snapshots=1)


def _recorded(folder: Path, tables: int, versions: int, *, drifted: bool = False) -> None:
    """Tables that so many versions changed."""
    project.make(
        folder, tables, pending=None, recorded=project.stepwise(versions, drifted=drifted), snapshots=20
    )


def _beside_other_namespaces(folder: Path, namespaces: int) -> None:
    """One table in a catalog with further namespaces that the project does not name."""
    project.add_other_namespaces(project.make(folder, 1, snapshots=20), namespaces)


def _baseline(folder: Path, tables: int) -> None:
    """Tables that one version records as they were."""
    project.make(folder, tables, pending=None, recorded=project.stepwise(1, baseline=True), snapshots=20)


WORKS: dict[str, Work] = {
    # At most four times the imports of a check, see `bench.check_speed`.
    "check, files": Work(_files, ("check",), (50, 100, 200), 1.0),
    "check, steps of one table": Work(_steps, ("check",), (500, 1000, 2000), 8, 200),
    "check, steps of one table, with SQL": Work(
        partial(_steps, sql="SELECT c5, c7 FROM db.t;\n"), ("check",), (500, 1000, 2000), 8, 200
    ),
    "check, 100 files that match all tables": Work(_match_files, ("check",), (250, 500, 1000), 20),
    "drift, columns of one table": Work(_wide_table, ("drift",), (1000, 5000, 20000), 0.8),
    "drift, tables of 100 versions": Work(partial(_recorded, versions=100), ("drift",), (100, 200, 300), 0.6),
    "drift, changed tables of 100 versions": Work(
        partial(_recorded, versions=100, drifted=True), ("drift",), (100, 200, 300), 6, status=4
    ),
    "drift, tables of one baseline, REST": Work(_baseline, ("drift",), (100, 200, 300), 1.8, is_remote=True),
    "plan, tables without a pending change": Work(
        partial(project.make, pending=None, snapshots=20), ("plan",), (1000, 2000, 4000), 1.2
    ),
    "plan, other namespaces, REST": Work(
        _beside_other_namespaces, ("plan",), (100, 200, 300), 2, is_remote=True, goal_elapsed_s=2
    ),
    "plan, changed tables, REST": Work(
        partial(project.make, snapshots=20), ("plan",), (100, 200, 300), 2, is_remote=True
    ),
    "status, tables": Work(
        partial(project.make, pending=None, snapshots=20, are_creations_recorded=True),
        ("status",),
        (750, 1500, 3000),
        8,
        150,
    ),
    "import, tables": Work(project.make_undeclared, ("import", "--dry-run"), (250, 500, 1000), 4),
    "plan, changed tables": Work(project.make, ("plan",), (250, 500, 1000), 4.0),
    # Beyond its start, a run takes 19 ms for each table.
    "apply, changed tables, without Spark": Work(_created, _APPLY, (100, 200, 400), 9, is_repeatable=False),
}
"""The works, by name."""


def measure(work: Work, size: int, rounds: int) -> Cost:
    """Make a project, and run the command on it in fresh processes: the least of each cost, as machines are
    noisy.

    :raises SystemExit: the command ends with another exit code.
    """
    again, once = (1, rounds) if work.is_repeatable else (rounds, 1)
    costs = [cost for _ in range(again) for cost in _measured(work, size, once)]
    return Cost(*(min(values) for values in zip(*map(astuple, costs), strict=True)))


def _measured(work: Work, size: int, rounds: int) -> list[Cost]:
    """The costs of the command on one project."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # A child's peak memory begins at its parent's, so this process has to stay small.
        with ProcessPoolExecutor(1) as pool:
            pool.submit(work.make, folder, size).result()
        with _catalog(work, folder):
            return [_run(work, folder) for _ in range(rounds)]


def _run(work: Work, folder: Path) -> Cost:
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *work.command], cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != work.status:
        raise SystemExit(f"`icemigrate {' '.join(work.command)}` ends with exit code {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss / 1024)


@contextmanager
def _catalog(work: Work, folder: Path) -> Iterator[None]:
    """A block in which the project's REST catalog answers, where it has one."""
    if not work.is_remote:
        yield
        return
    arguments = [sys.executable, "-m", "bench.rest_server", str(folder), str(_ROUND_TRIP_MS)]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        address = server.stdout.readline().strip()
        project.use_rest_server(folder, address)
        try:
            yield
        finally:
            server.stdin.close()


def exponent(sizes: Sequence[int], seconds: Sequence[float], start_s: float) -> float:
    """The exponent of the growth between the two largest sizes.

    :param start_s: what a process takes before the work.
    """
    few, many = (max(s - start_s, 0.01) for s in seconds[-2:])
    return math.log(many / few) / math.log(sizes[-1] / sizes[-2])


def lines(name: str, work: Work, rounds: int) -> Iterator[str]:
    """The result: a line for each size, and one with the exponent and the goals."""
    start = measure(work, 1, rounds)
    costs = []
    for size in work.sizes:
        costs.append(cost := measure(work, size, rounds))
        yield (
            f"{name}: {size:6} {cost.cpu_s:7.2f} s CPU, {cost.elapsed_s:7.2f} s elapsed, "
            f"{cost.peak_mb:4.0f} MB"
        )
    found = exponent(work.sizes, [cost.cpu_s for cost in costs], start.cpu_s)
    missed = work.missed(costs[-1])
    if found > _MOST_EXPONENT:
        missed.insert(0, f"exponent {found:.2f}, goal {_MOST_EXPONENT}")
    result = f"MISSED: {'; '.join(missed)}" if missed else "goals met"
    yield f"{name}: exponent {found:.2f}; {result}"


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "words", nargs="*", help="measure only the works with one of these words in their name"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the works")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    names = [
        n for n in (*WORKS, growing_table.NAME) if not given.words or any(word in n for word in given.words)
    ]
    if given.list:
        print(*names, sep="\n")
        return
    check_speed.compile_modules()
    for name in names:
        work = WORKS.get(name)
        for line in growing_table.lines(_VERSIONS) if work is None else lines(name, work, given.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
