"""Migration files written by commands."""
