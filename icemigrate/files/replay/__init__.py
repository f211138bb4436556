"""Migration files replayed over the declared state."""
