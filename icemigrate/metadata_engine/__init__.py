"""Commits of table metadata in Python, without Spark: the same interface as Spark's engine."""
