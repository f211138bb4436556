"""Spark: finding Java and Iceberg's jars, starting a session, running what a plan says."""
