"""The way back: a migration's own difference, inverted, over the tables as they are now; pure.

The same merge as on the way there, its sides exchanged: base is the table as declared after the migration,
wanted the one before it, actual what the catalog has.  So what others changed since stays, and what the
migration changed goes back, field by field, by id.
"""

from __future__ import annotations

from icemigrate.undo.asking import Asked, questions, questions_of_refill
from icemigrate.undo.committed import Commits, traced, with_commit
from icemigrate.undo.dependence import Blocker, blockers
from icemigrate.undo.finding import find, names_of, uuid_of
from icemigrate.undo.inverse import Sides, declared_again, inverse
from icemigrate.undo.keeping import keep, narrowed
from icemigrate.undo.late_refill import plan_late_refill
from icemigrate.undo.namespaces import Contents
from icemigrate.undo.planning import Place, Undo, plan_undo
from icemigrate.undo.redoing import barred, brought_back, under_other_names, with_recorded_ids
from icemigrate.undo.values import PLAIN, Options, Unanswered

__all__ = [
    "PLAIN",
    "Asked",
    "Blocker",
    "Commits",
    "Contents",
    "Options",
    "Place",
    "Sides",
    "Unanswered",
    "Undo",
    "barred",
    "blockers",
    "brought_back",
    "declared_again",
    "find",
    "inverse",
    "keep",
    "names_of",
    "narrowed",
    "plan_late_refill",
    "plan_undo",
    "questions",
    "questions_of_refill",
    "traced",
    "under_other_names",
    "uuid_of",
    "with_commit",
    "with_recorded_ids",
]
