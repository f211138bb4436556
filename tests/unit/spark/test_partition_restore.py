"""Which partition values are not restored, so that no deleted row comes back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.spark.partition_entries import IncompleteManifest, PartitionEntry
from icemigrate.spark.partition_restore import blocked_specs

DATA, EQUALITY, POSITIONS = "data", "equality-deletes", "position-deletes"


def entry(content: str, name: str, *, found: bool, **more: Any) -> PartitionEntry:
    """A file whose value was found or not."""
    saved = {"content": content, "file-path": name, **more}
    return PartitionEntry(saved, {1000: "eu" if found else None}, found={1000} if found else set())


def blocked(*entries: PartitionEntry) -> bool:
    """Whether nothing is restored where these files stand beside each other."""
    manifests = [
        IncompleteManifest(
            SimpleNamespace(content=lambda kind=kind: SimpleNamespace(id=lambda: kind)), 0, (one,)
        )
        for one in entries
        for kind in [int(one.content != DATA)]
    ]
    return bool(blocked_specs(manifests, {one.key for one in entries if not one.found}))


@pytest.mark.parametrize("content", [EQUALITY, POSITIONS])
@pytest.mark.parametrize(
    ("data", "delete", "is_blocked"),
    [(True, True, False), (True, False, True), (False, True, True), (False, False, True)],
)
def test_deletes_of_a_partition_need_the_value_of_every_file(
    content: str, data: bool, delete: bool, is_blocked: bool
) -> None:
    assert blocked(entry(DATA, "a", found=data), entry(content, "d", found=delete)) is is_blocked


def test_data_files_without_deletes_are_restored_beside_others() -> None:
    assert not blocked(entry(DATA, "a", found=True), entry(DATA, "b", found=False))


def test_deletes_that_name_their_data_file_apply_in_any_partition() -> None:
    named = {"referenced-data-file": "a"}
    path = {"keys": [2147483546], "values": [b"a".hex()]}
    for more in (named, {"lower-bounds": path, "upper-bounds": path}):
        delete = entry(POSITIONS, "d", found=False, **more)
        assert not blocked(entry(DATA, "a", found=True), entry(DATA, "b", found=False), delete)
