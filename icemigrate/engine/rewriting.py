"""Files that lie as a table was partitioned before, written again as it is partitioned now.

``CALL rewrite_data_files`` cannot be told to leave files alone that lie right already: its ``where`` knows
columns, not specs, and its options know sizes.  So the ``CALL`` runs where no file lies right, and all others
fit into one group.  Elsewhere the action behind it plans, and of what it planned the groups of old files are
written and committed, one by one: what a run that dies has committed, the next one does not do again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from icemigrate.data.rewrite import OPTIONS
from icemigrate.engine.explain import causes, explained
from icemigrate.engine.java_catalog import JavaCatalog
from icemigrate.engine.port import OnProgress
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen
from icemigrate.model.layout import Layout, OldShare, Portion, same_way
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName

ROUNDS = 5
"""How often it is begun anew when others change or write old files all the while."""
_GROUP_BYTES = int(OPTIONS["max-file-group-size-bytes"])
_OVERTAKEN = ("ValidationException", "CommitFailedException")


def rewrite_old_files(
    java: JavaCatalog, name: TableName, call: Callable[[], None], is_sorted: bool, on_progress: OnProgress
) -> int:
    """Rewrite them; how many are left, since others wrote them meanwhile.

    :param call: runs the ``CALL`` that rewrites all of a table's files.
    :raises EngineError: a file cannot be read or written, or others were faster each time.
    """
    for left in reversed(range(ROUNDS)):
        round_ = _Round.of(java, name, is_sorted)
        share = round_.share
        if share.files == 0:
            return 0
        on_progress(share)
        try:
            if round_.is_one_call:
                call()
            else:
                with explained():
                    round_.rewrite(share, on_progress)
        except IcemigrateError as error:
            # Some groups may be committed: whoever undoes it has to see that.
            java.refresh(name)
            if left == 0 or not any(c.kind.endswith(_OVERTAKEN) for c in causes(error.__cause__ or error)):
                raise
        java.refresh(name)
    return _Round.of(java, name, is_sorted).share.files


class _Round(Frozen):
    """What is there now, and what is to be done about it.

    :param table: Java's.
    :param same: ids of the specs whose files lie right.
    """

    java: JavaCatalog
    table: Any
    same: frozenset[int]
    layout: Layout
    is_sorted: bool

    @classmethod
    def of(cls, java: JavaCatalog, name: TableName, is_sorted: bool) -> _Round:
        table = java.table(name)
        known = table_from_json(java.read(table.operations().current()), name)
        return cls(java, table, same_way(known, known.spec), _counted(table), is_sorted)

    @property
    def share(self) -> OldShare:
        """How many files lie the old way, by the manifest list."""
        files = {spec: portion.files for spec, portion in self.layout.by_spec.items()}
        return OldShare(sum(n for spec, n in files.items() if spec not in self.same), sum(files.values()))

    @property
    def is_one_call(self) -> bool:
        share = self.share
        if share.files < share.all_files:
            return False
        size = self.table.currentSnapshot().summary().get("total-files-size")
        return size is not None and int(size) <= _GROUP_BYTES

    def rewrite(self, share: OldShare, on_progress: OnProgress) -> None:
        """Group by group, each in a commit of its own."""
        actions = self.java.iceberg.spark.actions.SparkActions.get(self.java.spark)
        action = actions.rewriteDataFiles(self.table)
        action = action.sort() if self.is_sorted else action.binPack()
        for key, value in OPTIONS.items():
            action.option(key, value)
        start = self.table.currentSnapshot().snapshotId()
        inner = _Inner(self.java, action)
        inner.call("init", start)
        plan = inner.field("planner").plan()
        left = share.files
        for group in self._groups(plan.groups()):
            done = self.java.jvm.java.util.HashSet()
            done.add(inner.call("rewriteFiles", plan, group))
            inner.call("commitManager", start).commitOrClean(done)
            left -= group.inputFileNum()
            on_progress(OldShare(max(left, 0), share.all_files))

    def _groups(self, planned: Any) -> Iterator[Any]:
        """The planned groups, with their old files alone."""
        current = self.table.spec()
        groups = planned.iterator()
        while groups.hasNext():
            group = groups.next()
            tasks = group.fileScanTasks()
            # A group is of files of the current spec, or of others; of both where that has no fields.
            if current.isPartitioned() and tasks.get(0).file().specId() == current.specId():
                continue
            old = self.java.jvm.java.util.ArrayList()
            for at in range(tasks.size()):
                task = tasks.get(at)
                if task.file().specId() not in self.same:
                    old.add(task)
            if not old.isEmpty():
                yield self.java.iceberg.actions.RewriteFileGroup(
                    group.info(),
                    old,
                    group.outputSpecId(),
                    group.maxOutputFileSize(),
                    group.inputSplitSize(),
                    group.expectedOutputFiles(),
                )


def _counted(table: Any) -> Layout:
    """How many data files lie which way, by the manifest list."""
    by_spec: dict[int, Portion] = {}
    snapshot = table.currentSnapshot()
    manifests = None if snapshot is None else snapshot.dataManifests(table.io()).iterator()
    while manifests is not None and manifests.hasNext():
        manifest = manifests.next()
        if not (manifest.hasAddedFiles() or manifest.hasExistingFiles()):
            continue
        # Unknown counts, as version 1 may have them, are at least one file.
        counts = [manifest.addedFilesCount(), manifest.existingFilesCount()]
        files = 1 if None in counts else sum(counts)
        spec = manifest.partitionSpecId()
        so_far = by_spec.get(spec, Portion(0, None))
        by_spec[spec] = Portion(so_far.files + files, None)
    return Layout(by_spec)


class _Inner(Frozen):
    """The parts of Java's rewriting action, which it does not show; each stands in it once."""

    java: JavaCatalog
    action: Any

    def call(self, name: str, *values: Any) -> Any:
        methods = self.action.getClass().getDeclaredMethods()
        method = next(m for m in methods if m.getName() == name and m.getParameterCount() == len(values))
        method.setAccessible(True)
        return method.invoke(self.action, self.java.array(self.java.jvm.java.lang.Object, values))

    def field(self, name: str) -> Any:
        field = self.action.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field.get(self.action)
