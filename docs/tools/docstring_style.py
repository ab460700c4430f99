"""Let mkdocstrings understand our docstrings.

They have lines such as `name (type): text` for arguments and attributes, and a line
`RETURNS (type): text`. This turns them into sections that griffe knows.
"""

import re
from typing import Any

from griffe import Extension, Object

FIELD = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \((.+?)\))?:(?: (.*))?$")
RETURNS = re.compile(r"^(RETURNS|YIELDS)(?: \((.+?)\))?: (.*)$")


class OurDocstrings(Extension):
    """Rewrite each docstring before it is parsed."""

    def on_instance(self, *, obj: Object, **context: Any) -> None:
        if obj.docstring is not None:
            section = "Attributes" if obj.is_class else "Args"
            obj.docstring.value = to_google_style(obj.docstring.value, section)


def to_google_style(text: str, section: str) -> str:
    """Rewrite a docstring. Lines that are indented belong to the field before them.

    section (str): The name of the section for fields, "Args" or "Attributes".
    """
    prose: list[str] = []
    fields: list[str] = []
    returned: list[str] = []
    target = prose
    in_code = False
    for line in text.split("\n"):
        in_code ^= line.startswith("```")
        field, result = FIELD.match(line), RETURNS.match(line)
        if result and not in_code:
            name, kind, rest = result.groups()
            returned += [f"{name.title()}:", f"    {kind or 'Any'}: {rest}"]
            target = returned
        elif field and not in_code:
            target = fields
            names, kind, rest = field.groups()
            for name in names.split(", "):
                fields.append(f"    {name}{f' ({kind})' if kind else ''}: {rest or ''}")
        elif target is not prose and line.startswith("    "):
            target.append(f"    {line}")
        else:
            target = prose
            prose.append(line)
    parts = ["\n".join(prose).strip()]
    if fields:
        parts.append("\n".join([f"{section}:", *fields]))
    if returned:
        parts.append("\n".join(returned))
    return "\n\n".join(part for part in parts if part)
