"""Facts about a catalog and its data files, fetched before planning."""
