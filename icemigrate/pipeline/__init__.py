"""Drains a write-ahead log of telemetry into tables of tenants, with Spark."""
