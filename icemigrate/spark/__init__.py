"""Spark: finds Java and Iceberg's jars, starts a session, and runs plans."""
