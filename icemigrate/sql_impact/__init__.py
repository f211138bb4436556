"""Finds SQL that reads or writes columns and tables that migrations change.

The package reads text and returns uses: it depends on neither catalogs nor plans.  SQLGlot is imported only
where SQL is parsed, because most projects configure no SQL files.
"""
