"""Results of the commands: frozen values that are printed and that the Python API returns."""
