"""Planning, pure: replay, merge, diff, undo, baseline and drift; values in, a plan out."""
