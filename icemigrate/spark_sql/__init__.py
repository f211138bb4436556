"""Spark SQL as text: quoting, literals, types and terms.  Nothing here knows a statement or runs one."""
