"""icemigrate: versioned, reviewed and reversible migrations for Apache Iceberg tables."""
