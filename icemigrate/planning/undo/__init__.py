"""Undo of migrations: the inverse of a migration's own changes, planned on the current tables; pure.

The merge is that of apply with exchanged sides: the base is the table as declared after the migration, and
the target the table as declared before it.  Changes of others stay, and the migration's changes are reversed,
field by field, by id.
"""

from __future__ import annotations

from icemigrate.planning.undo.dependencies import BlockingMigration, find_blocking_migrations
from icemigrate.planning.undo.evidence_questions import TableQuestions, refill_questions, undo_questions
from icemigrate.planning.undo.inverse import UndoStates, declared_after_undo, invert_migration
from icemigrate.planning.undo.late_refill import plan_late_refill
from icemigrate.planning.undo.retained_facts import fields_with_changed_type, retain_facts
from icemigrate.planning.undo.run_commits import (
    InterruptedCommits,
    with_committed_fields,
    with_interrupted_commits,
)
from icemigrate.planning.undo.undo_inputs import (
    DEFAULT_UNDO_OPTIONS,
    MissingEvidence,
    NamespaceContents,
    UndoEnvironment,
    UndoOptions,
    candidate_names,
    find_undo_table,
    recorded_uuid,
)
from icemigrate.planning.undo.undo_planner import MigrationUndo, plan_undo

__all__ = [
    "DEFAULT_UNDO_OPTIONS",
    "BlockingMigration",
    "InterruptedCommits",
    "MigrationUndo",
    "MissingEvidence",
    "NamespaceContents",
    "TableQuestions",
    "UndoEnvironment",
    "UndoOptions",
    "UndoStates",
    "candidate_names",
    "declared_after_undo",
    "fields_with_changed_type",
    "find_blocking_migrations",
    "find_undo_table",
    "invert_migration",
    "plan_late_refill",
    "plan_undo",
    "recorded_uuid",
    "refill_questions",
    "retain_facts",
    "undo_questions",
    "with_committed_fields",
    "with_interrupted_commits",
]
