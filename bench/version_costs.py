"""What each migration of one `apply` costs, for :mod:`bench.growing_table`."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.events import Event, MigrationRecorded
from icemigrate.project import open_project
from icemigrate.project.project_values import ApplyWith


def jvm_mb() -> float:
    """The resident memory of the JVM that this process started (Linux); 0 where none runs."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # one that ended meanwhile
            # The name may have blanks; then follow the state and the parent.
            name, _, rest = (process / "stat").read_text().partition("(")[2].rpartition(")")
            if name == "java" and int(rest.split()[1]) == os.getpid():
                status = dict(
                    line.split(":", 1)
                    for line in (process / "status").read_text().splitlines()
                    if ":" in line
                )
                return int(status["VmRSS"].split()[0]) / 1024
    return 0.0


def print_costs(apply_with: ApplyWith) -> None:
    """Apply the pending migrations of the project in the working directory; print a line of JSON for each.

    It has the CPU milliseconds of this process, without those of the JVM, and the megabytes of the JVM.

    :param apply_with: as in the project file.
    """
    project = dataclasses.replace(open_project(Path.cwd()), apply_with=apply_with)
    before = time.process_time()

    def listen(event: Event) -> None:
        nonlocal before
        if isinstance(event, MigrationRecorded):
            cpu_ms = (time.process_time() - before) * 1000
            print(json.dumps({"cpu_ms": cpu_ms, "jvm_mb": jvm_mb()}), flush=True)
            before = time.process_time()

    apply(project, plan(project).plan, on_event=listen)
