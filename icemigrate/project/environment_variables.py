"""``${NAME}`` in an environment: the variable's value, masked in every output unless it may be seen.

A value is masked by what it is for:

* *Stored places* (``namespaces``, ``overrides``, the catalog's ``name``) become names, locations and
  properties of tables, which plans print, and which catalogs, saved plans and histories keep.  A variable is
  refused there unless the project file lists it under ``public_variables``.
* *Addresses* (``uri``, ``warehouse``, ``endpoint``, ``region`` and the like) are shown without their
  credentials, and without the parameters that a variable gives.  A variable that is named like a secret is
  masked here too.
* Everything else (settings of clients, credentials) is masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Mapping as Dict

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence
from icemigrate.frozen import replace
from icemigrate.redaction import (
    credentials_in,
    hide_credentials,
    hide_parameters,
    hide_part_of_address,
    is_secret_name,
    parameters_in,
    register_secret,
)

_NAME = re.compile(r"\$(\$)?\{([^}]*)\}")
_Path = tuple[str, ...]
_STORED = ("namespaces", "overrides")
_ADDRESSES = frozenset(
    {
        *(("catalog", key) for key in ("type", "uri", "warehouse", "user")),
        *(("storage", key) for key in ("endpoint", "region", "path_style")),
        *(("spark", key) for key in ("master", "remote", "jars")),
        *(("record",), ("publish",), ("keep_tags",), ("apply_with",)),
    }
)


class VariableResolver:
    """Replaces the variables of one environment, and collects diagnostics."""

    def __init__(self, environ: Dict[str, str], public: frozenset[str]) -> None:
        self.mistakes: dict[Diagnostic, None] = {}
        self._environ = environ
        self._public = public
        self._written: dict[FilePosition, tuple[str, str]] = {}

    def put_in(self, node: YamlNode, path: _Path = ()) -> YamlNode:
        """The node with the variables' values; every value is masked according to its key."""
        if isinstance(node, YamlSequence):
            return YamlSequence(tuple(self.put_in(item, path) for item in node.items), node.place)
        if isinstance(node, YamlMapping):
            pairs = tuple((key, self.put_in(value, (*path, key.text))) for key, value in node.entries)
            return YamlMapping(pairs, node.place)
        if not isinstance(node.value, str) or "${" not in node.value:
            return node

        def value_of(found: re.Match[str]) -> str:
            return found[0][1:] if found[1] else self._value(found[2], path, node.place)

        text = _NAME.sub(value_of, node.text)
        for credential in credentials_in(node.text):
            for found in _NAME.finditer(credential):
                hide_part_of_address(self._environ.get(found[2], ""))
        for _, parameter in parameters_in(node.text):
            for found in _NAME.finditer(parameter):
                if found[2] not in self._public:
                    hide_parameters(f"?{parameter.replace(found[0], self._environ.get(found[2], ''))}")
        hide_credentials(text)
        self._written[node.place] = (node.text, text)
        return YamlScalar(text, text, node.place)

    def without_values(self, wrong: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Mistakes in values, quoted as the file has them: ``${NAME}``."""
        return tuple(self._without_value(one) for one in wrong)

    def _without_value(self, wrong: Diagnostic) -> Diagnostic:
        written = None if wrong.place is None else self._written.get(wrong.place)
        if written is None:
            return wrong
        template, text = written
        message = wrong.message.replace(shorten_text(text), shorten_text(template))
        if message == wrong.message:
            return wrong
        return replace(wrong, message=message, hint="check the value of the variable")

    def _value(self, name: str, path: _Path, place: FilePosition) -> str:
        if name not in self._environ:
            message = f"the environment variable `{name}` is not set"
            self._add(Diagnostic("missing-variable", message, place, f"export {name}=…"))
            return ""
        value = self._environ[name]
        is_public = name in self._public
        if path[:1] and (path[0] in _STORED or path == ("catalog", "name")):
            if not is_public:
                message = f"the value of `{name}` would be printed and stored in plans, histories and tables"
                hint = (
                    f"if it is not a secret, add to the top of the project file: public_variables: [{name}]"
                )
                self._add(Diagnostic("private-variable", message, place, hint))
        elif not is_public and (path not in _ADDRESSES or is_secret_name(name)):
            register_secret(value)
        elif not is_public:
            hide_parameters(value)
        return value

    def _add(self, mistake: Diagnostic) -> None:
        self.mistakes[mistake] = None
