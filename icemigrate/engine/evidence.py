"""Questions about a table's files answered from its manifests, by Iceberg's Java API; no data file is opened.

Manifests that the snapshot of then has as well are passed over: nothing in them is new.  What a merged
manifest carries on from before is told by its file sequence number (format versions 2 and 3), or by its path.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from icemigrate.engine.spark import SparkEngine, explained
from icemigrate.model.evidence import Evidence, Questions, Share
from icemigrate.model.names import TableName


def gather(engine: SparkEngine, name: TableName, questions: Questions) -> Evidence:
    """Answer questions about a table as it is now.

    :raises EngineError: there is no such table, or a manifest cannot be read.
    """
    with explained():
        table = engine.java_table(name)
        look = _Look(engine.iceberg, table, _fields(engine, questions))
        since = None if questions.since is None else table.snapshot(questions.since)
        is_known = questions.since is None or since is not None
        added = _Added(questions)
        for file in look.added_since(since, is_known):
            added.count(file)
        return Evidence(
            files=added.files,
            rows=added.rows,
            snapshots=look.snapshots_since(questions.since),
            nulls=added.nulls,
            held=_held(look, questions.held, added.paths if is_known else set()) if questions.held else {},
            there=frozenset(i for i in questions.snapshots if table.snapshot(i) is not None),
        )


def _fields(engine: SparkEngine, questions: Questions) -> Any:
    """The ids of all fields that metrics are needed of, as a Java set."""
    jvm = engine.session._jvm
    assert jvm is not None, "the engine works in a JVM of its own process"
    found = jvm.java.util.HashSet()
    for field_id in questions.nulls.union(*questions.held.values()):
        found.add(field_id)
    return found


@dataclass(frozen=True, slots=True)
class _File:
    """A live data file, as a manifest has it; maps by field id, of the fields that are asked about.

    :param sequence: its file sequence number; 0 or ``None`` in format version 1.
    """

    path: str
    rows: int
    sequence: int | None
    sizes: Mapping[int, int]
    values: Mapping[int, int]
    nulls: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Look:
    """Java's view of one table's manifests.

    :param fields: a Java set of the fields that are asked about; of the others no metrics are brought over,
        since those of a wide table's file fill kilobytes.
    """

    iceberg: Any
    table: Any
    fields: Any

    def live(self, manifest: Any) -> Iterator[_File]:
        """The files of a manifest that are not deleted."""
        specs = self.table.specs()
        reader = self.iceberg.ManifestFiles.read(manifest, self.table.io(), specs)
        try:
            for file in _each(reader):
                slim = file.copyWithStats(self.fields)
                text = self.iceberg.ContentFileParser.toJson(slim, specs.get(file.specId()))
                yield _file(json.loads(text), file.fileSequenceNumber())
        finally:
            reader.close()

    def manifests(self, snapshot: Any | None) -> dict[str, Any]:
        """The data manifests of a snapshot by path."""
        if snapshot is None:
            return {}
        return {m.path(): m for m in _each(snapshot.dataManifests(self.table.io()))}

    def heads(self) -> Iterator[Any]:
        """The current snapshots of all branches."""
        refs = self.table.refs()
        for name in _each(refs.keySet()):
            ref = refs.get(name)
            if ref.isBranch():
                yield self.table.snapshot(ref.snapshotId())

    def added_since(self, since: Any | None, is_known: bool) -> Iterator[_File]:
        """The live files of all branches that the snapshot of then does not have.

        :param is_known: whether the snapshot of then is still there; where it is not, every file counts.
        """
        old, seen = self.manifests(since), set[str]()
        is_old = self._is_old(since, old) if is_known else _never
        new: dict[str, Any] = {}
        for head in self.heads():
            new |= {path: m for path, m in self.manifests(head).items() if path not in old}
        for manifest in new.values():
            for file in self.live(manifest):
                if file.path not in seen and not is_old(file):
                    seen.add(file.path)
                    yield file

    def _is_old(self, since: Any | None, old: Mapping[str, Any]) -> Any:
        if since is None:
            return _never
        number = since.sequenceNumber()
        if number > 0:
            return lambda file: file.sequence is not None and file.sequence <= number
        paths = {file.path for manifest in old.values() for file in self.live(manifest)}
        return lambda file: file.path in paths

    def snapshots_since(self, since: int | None) -> int | None:
        """How many snapshots the main branch got; ``None`` where that of then is no ancestor any more."""
        count, snapshot = 0, self.table.currentSnapshot()
        while snapshot is not None:
            if snapshot.snapshotId() == since:
                return count
            count += 1
            parent = snapshot.parentId()
            if parent is None:
                return count if since is None else None
            snapshot = self.table.snapshot(parent)
        return 0 if since is None and count == 0 else None


def _each(found: Any) -> Iterator[Any]:
    """The elements of a Java collection.

    Py4J's own way ends with an exception in Java, and PySpark takes 10 ms to find out what it means.
    """
    elements = found.iterator()
    while elements.hasNext():
        yield elements.next()


def _never(_file: _File) -> bool:
    return False


def _file(saved: Mapping[str, Any], sequence: int | None) -> _File:
    return _File(
        path=saved["file-path"],
        rows=saved["record-count"],
        sequence=sequence,
        sizes=_map(saved, "column-sizes"),
        values=_map(saved, "value-counts"),
        nulls=_map(saved, "null-value-counts"),
    )


def _map(saved: Mapping[str, Any], key: str) -> dict[int, Any]:
    pairs = saved.get(key)
    return {} if pairs is None else dict(zip(pairs["keys"], pairs["values"], strict=True))


@dataclass(slots=True)
class _Added:
    """What the files that were added come to."""

    questions: Questions
    files: int = 0
    rows: int = 0
    paths: set[str] = field(default_factory=set)
    nulls: dict[int, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nulls = dict.fromkeys(self.questions.nulls, 0)

    def count(self, file: _File) -> None:
        """Take a file in."""
        self.files += 1
        self.paths.add(file.path)
        self.rows += file.rows
        for i, so_far in self.nulls.items():
            here = file.nulls.get(i)
            self.nulls[i] = None if so_far is None or here is None else so_far + here


def _held(look: _Look, wanted: Mapping[int, Collection[int]], new: Collection[str]) -> dict[int, Share]:
    """By field, the rows of the main branch whose files hold it.

    :param new: paths of files that were written when the field was gone.
    """
    files = [
        file
        for manifest in look.manifests(look.table.currentSnapshot()).values()
        for file in look.live(manifest)
    ]
    return {i: _share(files, leaves, new) for i, leaves in wanted.items()}


def _share(files: Iterable[_File], leaves: Collection[int], new: Collection[str]) -> Share:
    held = unknown = total = 0
    for file in files:
        total += file.rows
        if any(leaf in file.sizes or leaf in file.values for leaf in leaves):
            held += file.rows
        elif file.path not in new:
            # Metrics may be off for the field, or the file is older than it.
            unknown += file.rows
    return Share(held, unknown, total)
