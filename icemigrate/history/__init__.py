"""The history: one Iceberg table per project; its rows are for people, its properties for planning."""
