"""Retention, trash and clean-up of tables."""
