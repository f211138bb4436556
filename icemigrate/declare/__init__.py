"""The user's files: YAML text → nodes with places → typed values → declared tables at every version."""
