"""Rows and snapshots of tables: read with DuckDB, written with Arrow, committed in Python."""
