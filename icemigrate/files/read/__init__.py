"""Nodes to typed entries of migration files."""
