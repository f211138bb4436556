"""The way back: a migration's own difference, inverted, over the tables as they are now; pure.

The same merge as on the way there, its sides exchanged: base is the table as declared after the migration,
wanted the one before it, actual what the catalog has.  So what others changed since stays, and what the
migration changed goes back, field by field, by id.
"""

from __future__ import annotations

from icemigrate.undo.asking import Asked, questions
from icemigrate.undo.planning import Place, Undo, plan_undo
from icemigrate.undo.values import Options, Unanswered

__all__ = ["Asked", "Options", "Place", "Unanswered", "Undo", "plan_undo", "questions"]
