"""Events from XML documents, with types from an XML schema or from the form of each value.

The odmrp paper (section III.A) sends events as XML whose root element names the event's type. This file turns such a
document into an event, and refuses every document that could harm its reader.

Names. The root's local name is the event's type. Each *leaf* (an element without child elements) and each XML attribute
becomes an attribute of the event, named by the local names on the way from below the root: `info/label`, `@id`,
`info/@year`. Prefixes, `xmlns` declarations and `xsi:` attributes, which are for validators, are dropped.
A root that is itself a leaf gives its text under the name `.`. Repeated leaves are several values, in document order.

Text. Comments and processing instructions are left out; CDATA is text; an empty leaf is the empty string. White space
between elements is ignored, and any other text beside child elements is refused: it would be lost.

Types. Without a schema a value's form decides, surrounding white space aside:

* `true` and `false` are bools;
* digits with an optional sign, without leading zeros and within 64 bits, are an int: `007` and a longer number are
  identifiers and stay strings;
* digits with a decimal point or an exponent are a float, so `18.00` is 18.0, if they are within the range of floats;
* everything else is a string, `NaN` and `INF` too, and a string keeps its white space as it stands, as in XPath.

With a schema the document must be valid, and each value has its declared type: booleans, the integers, decimal, float
and double (all read as 64-bit floats, infinities allowed), and strings for everything else, dates included. A value
that no event can hold (an integer beyond 64 bits, NaN) is refused. Defaults in a schema are not filled in.

Documents may come from strangers: no DOCTYPE, so no entities; no network; bounds on size, depth, names and values.
A schema is read with the same care, but it comes from the reader: the time libxml2 takes to compile it is not bounded.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Final

from lxml import etree

from roamcast.content.event import INT_MAX, INT_MIN, MAX_VALUES, Event, Scalar, check_text
from roamcast.errors import ContentError

MAX_DOCUMENT: Final = 1 << 20
"""Bytes of a document, in its own encoding."""

MAX_DEPTH: Final = 256
"""Elements inside each other, the root included."""

MAX_ATTRIBUTES: Final = 500
"""XML attributes of one element: lxml reads them in quadratic time."""

MAX_PATH: Final = 4096
"""Characters of an attribute's name. Without it, one deep path over many leaves would multiply a document's size."""

MAX_NAMES: Final = 1000
"""Names taken from a schema: types used in several places can produce exponentially many."""

ROOT_LEAF: Final = "."
"""The attribute that holds the text of a root without children."""

_WHITE: Final = " \t\r\n"  # XML's own white space; str.strip() would take Unicode's
_XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
_XS: Final = "{http://www.w3.org/2001/XMLSchema}"

_INTEGER_FORM: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,18})")
_FLOAT_FORM: Final = re.compile(r"(?=[^.eE]*[.eE])[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOL_FORM: Final = {"true": True, "false": False}

ValueReader = Callable[[str], Scalar]
"""Turns the text of a valid document into a value."""


def value_from_form(text: str) -> Scalar:
    """The value that `text` stands for when no schema says its type."""
    form = text.strip(_WHITE)
    if form in _BOOL_FORM:
        return _BOOL_FORM[form]
    if _INTEGER_FORM.fullmatch(form) and INT_MIN <= int(form) <= INT_MAX:
        return int(form)
    if _FLOAT_FORM.fullmatch(form) and not math.isinf(float(form)):
        return float(form)
    return text


def event_from_xml(document: bytes | str, schema: "Schema | None" = None, payload: bytes = b"") -> Event:
    """The event that an XML document describes. Whatever is wrong with the document is a `ContentError`."""
    root = _parse(document, "document")
    declared = None if schema is None else schema.check(root)
    attributes: dict[str, list[Scalar]] = {}
    for count, (name, value) in enumerate(_values(root, declared)):
        _check_count(count + 1)
        attributes.setdefault(name, []).append(value)
    return Event(_local(root.tag), {name: tuple(values) for name, values in attributes.items()}, payload)


# Reading a document


def _parser(encoding: str | None) -> etree.XMLParser:
    return etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


_BYTES_PARSER: Final = _parser(None)
_STR_PARSER: Final = _parser("utf-8")  # a str is already decoded: ignore the encoding that it declares


def _parse(source: bytes | str, what: str) -> etree._Element:
    if not isinstance(source, bytes | str):
        raise ContentError(f"a {what} must be bytes or str, not {type(source).__name__}")
    if len(source) > MAX_DOCUMENT:
        raise ContentError(f"the {what} is longer than {MAX_DOCUMENT} bytes: {len(source)}")
    parser = _BYTES_PARSER
    if isinstance(source, str):
        check_text(source, f"a {what}")
        source, parser = source.encode(), _STR_PARSER
        if len(source) > MAX_DOCUMENT:
            raise ContentError(f"the {what} is longer than {MAX_DOCUMENT} bytes: {len(source)}")
    try:
        root = etree.fromstring(source, parser)
    except etree.XMLSyntaxError as problem:
        # The message has its line and column, and sometimes a line break in it.
        raise ContentError(f"the {what} is not well-formed XML: {_collapsed(str(problem.msg))}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise ContentError(f"the {what} has a DOCTYPE, which is refused: entities and DTDs are not read")
    return root


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]


def _place(element: etree._Element) -> str:
    return f"element {_local(element.tag)[:40]!r}, line {element.sourceline}"


def _values(root: etree._Element, declared: "_Declared | None") -> Iterator[tuple[str, Scalar]]:
    """Names and values in document order. `declared` is what a schema says about the root."""
    pending = [(root, "", 1, declared)]
    while pending:
        element, path, depth, declared = pending.pop()
        if depth > MAX_DEPTH:
            raise ContentError(f"{_place(element)}: elements are nested deeper than {MAX_DEPTH}")
        if len(element.attrib) > MAX_ATTRIBUTES:
            raise ContentError(f"{_place(element)}: it has more than {MAX_ATTRIBUTES} attributes")
        for key, text in element.attrib.items():
            if not str(key).startswith(_XSI):
                name = _local(key)
                read = value_from_form if declared is None else declared.attributes.get(name, str)
                yield _joined(path, f"@{name}", element), _read(read, str(text), f"attribute {name!r}", element)
        if len(element) == 0:
            read = value_from_form if declared is None else declared.read
            yield path or ROOT_LEAF, _read(read, element.text or "", "the text", element)
            continue
        _check_count(len(pending) + len(element))  # each has a value or more: refuse before building their paths
        _check_unmixed(element)
        for child in reversed(element):
            name = _local(child.tag)
            below = None if declared is None else declared.children[name]
            pending.append((child, _joined(path, name, child), depth + 1, below))


def _check_count(values: int) -> None:
    if values > MAX_VALUES:
        raise ContentError(f"the document has more than {MAX_VALUES} values")


def _joined(path: str, name: str, element: etree._Element) -> str:
    joined = f"{path}/{name}" if path else name
    if len(joined) > MAX_PATH:
        raise ContentError(f"{_place(element)}: its path is longer than {MAX_PATH} characters")
    return joined


def _read(read: ValueReader, text: str, what: str, element: etree._Element) -> Scalar:
    try:
        return read(text)
    except ValueError as problem:
        raise ContentError(f"{_place(element)}: {what} {problem}") from None


def _check_unmixed(element: etree._Element) -> None:
    for text in (element.text, *(child.tail for child in element)):
        if text and text.strip(_WHITE):
            shown = text.strip(_WHITE)[:40]
            raise ContentError(f"{_place(element)}: it mixes text with elements, which is refused: {shown!r}")


# Schemas: the values of built-in types. Each reader sees text that libxml2 has found valid.


def _collapsed(text: str) -> str:
    return re.sub(f"[{_WHITE}]+", " ", text).strip(" ")


def _form(text: str) -> str:
    form = text.strip(_WHITE)
    if not form:  # valid where the element is nil or has a default
        raise ValueError("is empty, which its type has no value for")
    return form


def _integer(text: str) -> int:
    form = _form(text)
    digits = form.lstrip("+-").lstrip("0")
    if len(digits) > 19 or not INT_MIN <= (value := int(form.rstrip("0123456789") + (digits or "0"))) <= INT_MAX:
        raise ValueError(f"is an integer beyond 64 bits: {form[:40]}")
    return value


def _real(text: str) -> float:
    form = _form(text)
    value = float(form)
    if math.isnan(value):
        raise ValueError("is NaN, which no comparison can match")
    if math.isinf(value) and form not in ("INF", "-INF"):
        raise ValueError(f"is beyond the range of 64-bit floats: {form[:40]}")
    return value


def _boolean(text: str) -> bool:
    return _form(text) in ("true", "1")


_READERS: Final[dict[ValueReader, str]] = {
    str: "string normalizedString anySimpleType",
    _collapsed: "token language Name NCName NMTOKEN ID IDREF anyURI QName hexBinary base64Binary "
    "date dateTime time duration gYear gYearMonth gMonth gMonthDay gDay",
    _integer: "integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger "
    "unsignedLong unsignedInt unsignedShort unsignedByte",
    _real: "decimal double float",
    _boolean: "boolean",
}
_BUILT_IN: Final = {name: reader for reader, names in _READERS.items() for name in names.split()}

_GROUPS: Final = frozenset({"sequence", "choice", "all"})
_SHAPES: Final = "schema element attribute complexType simpleType simpleContent extension restriction annotation"
_FACETS: Final = (
    "enumeration pattern length minLength maxLength minInclusive maxInclusive minExclusive maxExclusive "
    "totalDigits fractionDigits whiteSpace unique key keyref selector field"
)  # they narrow what is valid, which libxml2 checks, and do not change types
_UNDERSTOOD: Final = _GROUPS.union(_SHAPES.split(), _FACETS.split())
_NOT_UNDERSTOOD_KEYS: Final = ("substitutionGroup", "abstract")


class _Declared:
    """What a schema says about an element: how to read its text and its attributes, and the same for its children."""

    def __init__(self) -> None:
        self.read: ValueReader = str
        self.attributes: dict[str, ValueReader] = {}
        self.children: dict[str, _Declared] = {}


class Schema:
    """An XML schema: which documents are valid, and the types of their values. Make it once, use it often.

    It supports global and local elements and attributes, `ref`, named and inline types, nested sequence, choice and
    all, simple types by restriction, and simple content by extension. Elements go by their local names. Anything that
    could change a type unnoticed (import, include, groups, lists, unions, derived complex types) is refused by name.
    """

    def __init__(self, validator: etree.XMLSchema, roots: dict[str, _Declared]) -> None:
        self._validator = validator
        self._roots = roots

    @classmethod
    def from_xsd(cls, source: bytes | str) -> "Schema":
        root = _parse(source, "schema")
        _check_understood(root)  # before libxml2 compiles it, which would fetch what an import names
        try:
            validator = etree.XMLSchema(root)
        except etree.XMLSchemaParseError as problem:
            raise ContentError(f"the schema is not valid: {problem}") from None
        return cls(validator, _SchemaReader(root).read())

    def check(self, root: etree._Element) -> _Declared:
        """The declaration of `root`. Raises `ContentError` unless the document below it is valid."""
        try:
            self._validator.assertValid(root.getroottree())
        except etree.DocumentInvalid as problem:  # its message ends with the line
            raise ContentError(f"the document does not fit its schema: {problem}") from None
        return self._roots[_local(root.tag)]

    def names(self, root: str, most: int = MAX_NAMES) -> tuple[str, ...]:
        """The attributes that an event of type `root` can have, in the order of the schema, at most `most` of them.

        An element inside itself is left out, at any depth: the list would never end.
        """
        if root not in self._roots:
            raise ContentError(f"the schema has no root element {root!r}; it has {', '.join(sorted(self._roots))}")
        return tuple(itertools.islice(_declared_names(self._roots[root]), most))


def _declared_names(root: _Declared) -> Iterator[str]:
    pending: list[tuple[_Declared, str, frozenset[_Declared]]] = [(root, "", frozenset())]
    while pending:
        declared, path, above = pending.pop()
        for name in declared.attributes:
            yield f"{path}/@{name}" if path else f"@{name}"
        if not declared.children:
            yield path or ROOT_LEAF
        inside = above | {declared}
        for name, child in reversed(declared.children.items()):
            if child not in inside and len(inside) < MAX_DEPTH:
                pending.append((child, f"{path}/{name}" if path else name, inside))


def _check_understood(root: etree._Element) -> None:
    pending = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        name = _local(node.tag)
        if node.tag != _XS + name or name not in _UNDERSTOOD or (name == "schema") is not (depth == 1):
            raise ContentError(f"the schema has what is not understood here: {_place(node)}")
        if depth > MAX_DEPTH:
            raise ContentError(f"{_place(node)}: the schema is nested deeper than {MAX_DEPTH}")
        for key in _NOT_UNDERSTOOD_KEYS:
            if node.get(key) is not None:
                raise ContentError(f"{_place(node)}: {key!r} is not understood here")
        if name != "annotation":
            pending.extend((child, depth + 1) for child in node)


class _SchemaReader:
    """Turns the nodes of a schema into declarations. Types may contain themselves, so declarations form a graph."""

    def __init__(self, root: etree._Element) -> None:
        self._elements = {str(node.get("name")): node for node in root.iterchildren(_XS + "element")}
        self._attributes = {str(node.get("name")): node for node in root.iterchildren(_XS + "attribute")}
        self._types = {
            str(node.get("name")): node for node in root.iterchildren(_XS + "complexType", _XS + "simpleType")
        }
        self._made: dict[etree._Element, _Declared] = {}
        self._pending: list[etree._Element] = []

    def read(self) -> dict[str, _Declared]:
        roots = {name: self._declared(node) for name, node in self._elements.items()}
        while self._pending:
            node = self._pending.pop()
            self._fill(self._made[node], node)
        return roots

    def _declared(self, node: etree._Element) -> _Declared:
        if node not in self._made:
            self._made[node] = _Declared()
            self._pending.append(node)
        return self._made[node]

    def _fill(self, declared: _Declared, node: etree._Element) -> None:
        kind = self._type_of(node)
        if kind is None:
            raise ContentError(f"{_place(node)}: {node.get('name')!r} is declared without a type")
        if not isinstance(kind, etree._Element) or kind.tag == _XS + "simpleType":
            declared.read = self._simple(kind)
            return
        holder = kind
        for extension in kind.iterfind(f"{_XS}simpleContent/*"):
            declared.read = self._simple(self._named(extension, "base"))
            holder = extension
        for attribute in holder.iterchildren(_XS + "attribute"):
            found = self._referred(attribute, self._attributes)
            kind_of_text = self._type_of(found)
            declared.attributes[str(found.get("name"))] = str if kind_of_text is None else self._simple(kind_of_text)
        groups = [kind]
        while groups:
            for particle in groups.pop():
                if particle.tag == _XS + "element":
                    found = self._referred(particle, self._elements)
                    declared.children[str(found.get("name"))] = self._declared(found)
                elif _local(particle.tag) in _GROUPS:
                    groups.append(particle)

    def _referred(self, node: etree._Element, among: dict[str, etree._Element]) -> etree._Element:
        reference = node.get("ref")
        return node if reference is None else among[reference.rpartition(":")[2]]

    def _type_of(self, node: etree._Element) -> etree._Element | ValueReader | None:
        """The type of an element or attribute: a node, a built-in type's reader, or None if the schema gives none."""
        if node.get("type") is not None:
            return self._named(node, "type")
        return next(node.iterchildren(_XS + "complexType", _XS + "simpleType"), None)

    def _named(self, node: etree._Element, key: str) -> etree._Element | ValueReader:
        prefix, _, name = str(node.get(key)).rpartition(":")
        if f"{{{node.nsmap.get(prefix or None)}}}" != _XS:
            return self._types[name]
        if name not in _BUILT_IN:
            raise ContentError(f"{_place(node)}: the type {name!r} is not understood here")
        return _BUILT_IN[name]

    def _simple(self, kind: etree._Element | ValueReader) -> ValueReader:
        while isinstance(kind, etree._Element):
            restriction = kind.find(_XS + "restriction")
            if kind.tag != _XS + "simpleType" or restriction is None:
                raise ContentError(f"{_place(kind)}: {kind.get('name')!r} is not a restriction of a built-in type")
            if restriction.get("base") is not None:
                kind = self._named(restriction, "base")
            else:
                kind = next(restriction.iterchildren(_XS + "simpleType"))
        return kind
