"""The history: one Iceberg table per project, whose rows are for people and whose properties are for planning."""
