"""Iceberg's nouns as frozen values: no I/O, no YAML, no Spark."""
