"""Describe the errors of a config."""

from typing import Any, Literal, TypeGuard, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ..bilm.config import shorten


def describe_error(
    error: ValidationError,
    model: type[BaseModel],
    data: dict[str, Any],
    overrides: dict[str, Any],
) -> str:
    """Describe the first error in one sentence: the dotted name of the setting, what
    was found and what was expected.

    model (type[BaseModel]): The class of the whole config.
    data (dict[str, Any]): The config that has the error.
    overrides (dict[str, Any]): The settings that options have set, by dotted name.
    """
    first = error.errors()[0]
    if not first["loc"]:  # the model raised it, with a whole sentence
        return str(first["ctx"]["error"])
    section = model
    names: list[str] = []
    value: Any = data
    for key in map(str, first["loc"]):
        names.append(key)
        if key not in section.model_fields:
            known = ", ".join(sorted(section.model_fields))
            return f"{'.'.join(names)} is not a setting; expected one of {known}"
        value = value[key]
        field = section.model_fields[key]
        if not _is_section(field.annotation):
            break  # the rest of the location lies inside the value
        section = field.annotation
    if first["type"] == "model_type":
        expected = "a section"
    elif first["type"] == "finite_number":
        expected = "a finite number"
    elif first["type"].endswith("_type") or not _describe_range(field):
        expected = _describe_type(field.annotation)
    else:
        expected = _describe_range(field)
    name = ".".join(names)
    if overrides.get(name) is True:  # spaCy's value of an option that has none
        expected = expected.removesuffix(" or nothing")
        return f"found --{name} without a value; expected {expected} after it"
    return f"{name} is {shorten(value)}; expected {expected}"


def _is_section(kind: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _describe_range(field: FieldInfo) -> str:
    """Describe the values that a number may have; "" if there are no limits."""
    limits = {
        key: getattr(item, key)
        for item in field.metadata
        for key in ("gt", "ge", "lt", "le")
        if hasattr(item, key)
    }
    if {"ge", "le"} <= limits.keys():
        return f"{limits['ge']} to {limits['le']}"
    forms = {
        "gt": "more than {}",
        "ge": "{} or more",
        "lt": "less than {}",
        "le": "at most {}",
    }
    return " and ".join(forms[key].format(limit) for key, limit in limits.items())


def _describe_type(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if kind is type(None):
        return "nothing"
    if get_origin(kind) in (list, dict) or not get_args(kind):
        return str(kind) if get_args(kind) else kind.__name__
    return " or ".join(map(_describe_type, get_args(kind)))
