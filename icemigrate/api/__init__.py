"""The Python API: a project, and the tables of its catalog or of any other one."""
