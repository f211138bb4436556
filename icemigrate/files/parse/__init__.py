"""YAML text to nodes with positions, checked against the JSON Schemas."""
