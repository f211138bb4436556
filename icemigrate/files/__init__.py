"""The user's files: YAML text, nodes with positions, typed values, and declared tables of every version."""
