"""The use cases: each one function that wires the rooms together and returns a frozen value."""
