"""Reproducible test data for Iceberg tables (``docs/test-data.md`` has the rules).

The Rust crates in ``rust/`` make the same values; a test compares them.
"""
