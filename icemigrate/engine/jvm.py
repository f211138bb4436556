"""Names in the JVM, each looked up once.

Py4J asks the JVM about every part of ``org.apache.iceberg.SchemaParser.fromJson`` whenever it is written,
which takes longer than most calls themselves.
"""

from __future__ import annotations

from typing import Any


class Names:
    """A view of packages, classes and their static members that remembers what it has found.

    :param found: Py4J's view of the JVM, a package or a class.
    """

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaClass, JavaPackage

        value = getattr(self._found, name)
        if isinstance(value, (JavaPackage, JavaClass)):
            value = Names(value)
        # The next time it is an attribute like any other, and this is not called.
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any) -> Any:
        """Make an object of the class."""
        return self._found(*args)
