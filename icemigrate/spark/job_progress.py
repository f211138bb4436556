"""The progress of a statement in Spark, by the tasks of its running stages."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from icemigrate.frozen import Frozen
from icemigrate.system.activity import activity
from icemigrate.system.measured_activity import remaining_text

if TYPE_CHECKING:
    from pyspark import SparkContext

_ASK_INTERVAL_S = 1.0


class TaskCounts(Frozen):
    """The tasks of all running stages; Spark knows a later stage only when it begins."""

    done: int
    total: int


def job_activity(context: SparkContext, what: str) -> AbstractContextManager[None]:
    """A block in which Spark runs jobs.

    :param what: ``Writing rows of table `a.b```.
    """
    began = time.monotonic()
    asked_at, text = began, what

    def describe() -> str:
        nonlocal asked_at, text
        now = time.monotonic()
        if now - asked_at >= _ASK_INTERVAL_S:
            asked_at, text = now, progress_text(what, running_tasks(context), now - began)
        return text

    return activity(describe)


def running_tasks(context: SparkContext) -> TaskCounts:
    """The tasks of the stages that run now."""
    tracker = context.statusTracker()
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    stages = [stage for stage in found if stage is not None]
    return TaskCounts(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))


def progress_text(what: str, tasks: TaskCounts, elapsed_s: float) -> str:
    """The text with the tasks that are done, and the time that the others take at the speed so far."""
    if tasks.total < 2:
        return what
    shown = f"{what}: {tasks.done} of {tasks.total} tasks"
    if not tasks.done:
        return shown
    return f"{shown}, {remaining_text(elapsed_s, tasks.done / tasks.total)}"
