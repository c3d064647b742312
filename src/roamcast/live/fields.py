"""Where in the messages of a protocol something may stand, found from the types of their fields.

Only these fields are searched when a message arrives: others, such as contexts, may be deep.
"""

import typing
from collections.abc import Sequence
from typing import Any

import msgspec

from roamcast.protocols.messages import Message


def fields_with(kind: type, messages: Sequence[type[Message]]) -> dict[type, tuple[str, ...]]:
    """Of each struct that messages are made of: the fields that may contain a value of this kind."""
    fields: dict[type, tuple[str, ...]] = {}

    def explore(shape: Any, above: set[Any]) -> bool:  # noqa: ANN401  # any annotation
        """Whether a value of this type may contain one."""
        if shape is kind:
            return True
        if not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
            found = [explore(inner, above) for inner in typing.get_args(shape)]  # all of them
            return any(found)
        if shape in above:
            return False
        names = [field.name for field in msgspec.structs.fields(shape) if explore(field.type, above | {shape})]
        fields[shape] = tuple(names)
        return bool(names)

    for message in messages:
        explore(message, set())
    return fields
