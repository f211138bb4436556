"""Rewrites files of older partition specs to the current one.

``CALL rewrite_data_files`` cannot leave files alone that already have the current spec: its ``where`` filters
by columns, not specs, and its options by sizes.  So the ``CALL`` runs where no file has the current spec, and
all files fit into one group.  Otherwise the action behind it plans, and the planned groups of old files are
written and committed, one by one: the next run does not repeat the commits of an interrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from icemigrate.data_steps.rewrite import REWRITE_OPTIONS
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import FilesBySpec, FileTotals, OldSpecFiles, equivalent_spec_ids
from icemigrate.spark.engine_port import OnProgress
from icemigrate.spark.java_catalog import JavaCatalog
from icemigrate.spark.java_errors import cause_chain, convert_java_errors

ROUNDS = 5
"""The maximum number of attempts while others change or write old files."""
_GROUP_BYTES = int(REWRITE_OPTIONS["max-file-group-size-bytes"])
_OVERTAKEN = ("ValidationException", "CommitFailedException")


def rewrite_old_files(
    java: JavaCatalog, name: TableName, call: Callable[[], None], is_sorted: bool, on_progress: OnProgress
) -> int:
    """Rewrite the old files; returns how many remain, because others wrote them meanwhile.

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
                with convert_java_errors():
                    round_.rewrite(share, on_progress)
        except IcemigrateError as error:
            # Some groups may be committed, which an undo must see.
            java.refresh(name)
            if left == 0 or not any(
                c.kind.endswith(_OVERTAKEN) for c in cause_chain(error.__cause__ or error)
            ):
                raise
        java.refresh(name)
    return _Round.of(java, name, is_sorted).share.files


class _Round(Frozen):
    """One attempt on the current files.

    :param table: Java's.
    :param same: ids of the specs that equal the current one.
    """

    java: JavaCatalog
    table: Any
    same: frozenset[int]
    layout: FilesBySpec
    is_sorted: bool

    @classmethod
    def of(cls, java: JavaCatalog, name: TableName, is_sorted: bool) -> _Round:
        table = java.table(name)
        known = table_from_json(java.read(table.operations().current()), name)
        return cls(java, table, equivalent_spec_ids(known, known.spec), _counted(table), is_sorted)

    @property
    def share(self) -> OldSpecFiles:
        """The number of old files, by the manifest list."""
        files = {spec: portion.files for spec, portion in self.layout.by_spec.items()}
        return OldSpecFiles(sum(n for spec, n in files.items() if spec not in self.same), sum(files.values()))

    @property
    def is_one_call(self) -> bool:
        share = self.share
        if share.files < share.all_files:
            return False
        size = self.table.currentSnapshot().summary().get("total-files-size")
        return size is not None and int(size) <= _GROUP_BYTES

    def rewrite(self, share: OldSpecFiles, on_progress: OnProgress) -> None:
        """Rewrite group by group, each in its own commit."""
        actions = self.java.iceberg.spark.actions.SparkActions.get(self.java.spark)
        action = actions.rewriteDataFiles(self.table)
        action = action.sort() if self.is_sorted else action.binPack()
        for key, value in REWRITE_OPTIONS.items():
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
            on_progress(OldSpecFiles(max(left, 0), share.all_files))

    def _groups(self, planned: Any) -> Iterator[Any]:
        """The planned groups, with their old files only."""
        current = self.table.spec()
        groups = planned.iterator()
        while groups.hasNext():
            group = groups.next()
            tasks = group.fileScanTasks()
            # A group has files of the current spec, or of others; of both where the spec has no fields.
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


def _counted(table: Any) -> FilesBySpec:
    """The number of data files of each spec, by the manifest list."""
    by_spec: dict[int, FileTotals] = {}
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
        so_far = by_spec.get(spec, FileTotals(0, None))
        by_spec[spec] = FileTotals(so_far.files + files, None)
    return FilesBySpec(by_spec)


class _Inner(Frozen):
    """Private parts of Java's rewriting action; each occurs in it once."""

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
