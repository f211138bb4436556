"""Runs plans: the only package that changes tables."""
