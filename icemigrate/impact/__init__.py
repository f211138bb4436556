"""The room of impact: SQL that reads or writes tables, searched for what migrations change.

Text in, uses out: it knows neither catalogs nor plans.  SQLGlot is imported where SQL is parsed, and nowhere
else, since most projects name no SQL.
"""
