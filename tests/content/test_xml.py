"""From XML to events: names, types, schemas, and every kind of document that is refused."""

import contextlib
import math
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roamcast.content import xml
from roamcast.content.event import Event, Scalar
from roamcast.content.xml import Schema, event_from_xml, value_from_form
from roamcast.errors import ContentError


def exactly(event: Event) -> dict[str, list[tuple[type, Scalar]]]:
    """Attributes with the types that Python's `==` does not tell apart."""
    return {name: [(type(value), value) for value in values] for name, values in event.attributes.items()}


def test_paths_to_leaves_and_attributes_become_names() -> None:
    event = event_from_xml('<CD id="001"><category>jazz</category><info year="1959"><label>X</label></info></CD>')
    assert event.type == "CD"
    assert exactly(event) == {
        "@id": [(str, "001")],
        "category": [(str, "jazz")],
        "info/@year": [(int, 1959)],
        "info/label": [(str, "X")],
    }


def test_the_papers_first_event() -> None:
    document = b"""<?xml version="1.0" encoding="UTF-8"?>
<CD id="001" timestamp="1999-02-27T12:00:00.000-00:00" xmlns="http://example.org/lib">
    <category>jazz</category>
    <composer>Evans</composer>
    <price>18.00</price>
</CD>
"""
    expected = Event.of(
        "CD",
        {
            "@id": "001",
            "@timestamp": "1999-02-27T12:00:00.000-00:00",
            "category": "jazz",
            "composer": "Evans",
            "price": 18.0,
        },
        payload=b"sound",
    )
    assert event_from_xml(document, payload=b"sound") == expected
    assert event_from_xml(document.decode(), payload=b"sound") == expected


@pytest.mark.parametrize(
    ("document", "attributes"),
    [
        ("<t>21.5</t>", {".": (21.5,)}),
        ("<t/>", {".": ("",)}),
        ('<t a="1"/>', {"@a": (1,), ".": ("",)}),
        ("<t><a/></t>", {"a": ("",)}),
        ("<t><a>  </a></t>", {"a": ("  ",)}),
        ("<t><a> x y </a></t>", {"a": (" x y ",)}),
        ("<t><a> 5\n</a></t>", {"a": (5,)}),
        ("<t><a>1</a><b/><a>x</a><a>1</a></t>", {"a": (1, "x", 1), "b": ("",)}),
        ("<t><i><a>1</a></i><i><a>2</a><b>3</b></i></t>", {"i/a": (1, 2), "i/b": (3,)}),
        ('<t><a u="m">5</a></t>', {"a/@u": ("m",), "a": (5,)}),
        ("<t><a>ja<!-- no -->z<?no no?>z</a><!-- no --></t>", {"a": ("jazz",)}),
        ("<t><a><![CDATA[<&]]>x</a></t>", {"a": ("<&x",)}),
        ("<t><a>&lt;&#233;</a></t>", {"a": ("<é",)}),
        ('<t xml:lang="en" xmlns:p="u" p:x="1"><p:a>2</p:a></t>', {"@lang": ("en",), "@x": (1,), "a": (2,)}),
        ('<t xmlns:s="http://www.w3.org/2001/XMLSchema-instance" s:schemaLocation="u v"><a>1</a></t>', {"a": (1,)}),
        (
            '<t xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="/etc/hostname" parse="text"/></t>',
            {"include/@href": ("/etc/hostname",), "include/@parse": ("text",), "include": ("",)},
        ),
    ],
)
def test_names_and_values(document: str, attributes: dict[str, tuple[Scalar, ...]]) -> None:
    assert exactly(event_from_xml(document)) == exactly(Event("t", attributes))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("-12", -12),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", "9223372036854775808"),
        ("9" * 5000, "9" * 5000),
        ("001", "001"),
        ("-01", "-01"),
        ("18.00", 18.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("-2.5e-3", -0.0025),
        ("1E3", 1000.0),
        ("5.", "5."),
        ("00.5", "00.5"),
        (".", "."),
        ("e5", "e5"),
        ("1e", "1e"),
        ("1e999", "1e999"),
        ("NaN", "NaN"),
        ("INF", "INF"),
        ("-INF", "-INF"),
        ("inf", "inf"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("٣", "٣"),
        ("true", True),
        ("false", False),
        ("\ttrue ", True),
        ("True", "True"),
        ("\u00a05", "\u00a05"),
        ("1999-02-27", "1999-02-27"),
        ("", ""),
    ],
)
def test_the_form_decides_the_type(text: str, value: Scalar) -> None:
    assert (type(value_from_form(text)), value_from_form(text)) == (type(value), value)


@given(st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())
def test_a_value_in_its_shortest_form_comes_back(value: int | float | bool) -> None:
    text = str(value).lower()
    assert exactly(event_from_xml(f"<t>{text}</t>")) == {".": [(type(value), value)]}


# Documents that are refused

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "well-formed"),
        ("   ", "well-formed"),
        ("no markup", "well-formed"),
        ("<a><b></a>", "line 1"),
        ("<a>\n\n<b", "line 3"),
        ("<a/><b/>", "well-formed"),
        ("<a>&nbsp;</a>", "nbsp"),
        ('<a x="1" x="2"/>', "redefined"),
        ("<p:a/>", "prefix p"),
        ("<a>\0</a>", "well-formed"),
        (b"<a>\0</a>", "well-formed"),
        (b"<a/>\0", "well-formed"),
        ("<a>\x01</a>", "well-formed"),
        ("<a>&#0;</a>", "well-formed"),
        ("<a>&#xD800;</a>", "well-formed"),
        ("<a>\ud800</a>", "lone surrogate"),
        ("<a>\uffff</a>", "well-formed"),
        (b"<a>\xff</a>", "encoding"),
        (b"<a>\xed\xa0\x80</a>", "encoding"),
        (b'<?xml version="1.0" encoding="UTF-16"?><a/>', "well-formed"),
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "no-such"),
        ("<a/>".encode("utf-16-le"), "well-formed"),
        (f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>', "amplification"),
        (f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a x="&l9;"/>', "amplification"),
        ("<!DOCTYPE a><a/>", "DOCTYPE"),
        ('<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><a/>', "DOCTYPE"),
        ('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "DOCTYPE"),
        ('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>', "DOCTYPE"),
        ('<!DOCTYPE a [<!ENTITY % e SYSTEM "http://127.0.0.1:9/"> %e;]><a/>', "DOCTYPE"),
        ("<a>" * 300 + "</a>" * 300, "256"),
        ("<a>" * 100_000, "256"),
        ("<a>text<b/></a>", "element 'a', line 1: it mixes text with elements, which is refused: 'text'"),
        ("<a>\n<b/>\n</a>".replace("\n</a>", " tail</a>"), "'tail'"),
        ("<a>" + "x" * (1 << 20) + "</a>", "longer than 1048576 bytes: 1048583"),
        ("<a>" + "é" * (1 << 19) + "</a>", "longer than 1048576 bytes: 1048583"),
        (b" " * ((1 << 20) + 1), "longer than 1048576"),
        ("<a>" + "<b/>" * 513 + "</a>", "more than 512 values"),
        ("<a>" + "<b x='' y=''/>" * 171 + "</a>", "more than 512 values"),
        (f"<a><{'b' * 4000}>" + "<c/>" * 250_000 + f"</{'b' * 4000}></a>", "more than 512 values"),
        ("<a " + " ".join(f'x{i}=""' for i in range(60_000)) + "/>", "more than 500 attributes"),
        (f"<a><{'b' * 4000}><{'c' * 96}/></{'b' * 4000}></a>", "longer than 4096"),
        (5, "bytes or str, not int"),
    ],
)
def test_a_document_is_refused_at_once_and_by_its_fault(document: bytes | str, reason: str) -> None:
    start = time.process_time()
    with pytest.raises(ContentError) as problem:
        event_from_xml(document)
    assert reason in str(problem.value)
    assert time.process_time() - start < 1


def test_the_bounds_themselves_are_allowed() -> None:
    assert event_from_xml("<a>" * 256 + "</a>" * 256).attributes == {"/".join("a" * 255): ("",)}
    assert event_from_xml("<a>" + "<b/>" * 512 + "</a>").attributes == {"b": ("",) * 512}
    assert len(event_from_xml("<a " + " ".join(f'x{i}=""' for i in range(500)) + "/>").attributes) == 501
    assert event_from_xml(f"<a><{'b' * 4000}><{'c' * 95}/></{'b' * 4000}></a>").values("b" * 4000 + "/" + "c" * 95)
    long = "x" * (16 * 1024 - 2)  # with the type, "a", and the name, ".", as many characters as an event may have
    assert event_from_xml(f"<a>{long}</a>").values(".") == (long,)
    with pytest.raises(ContentError, match="may have 16384 characters, not 16385"):
        event_from_xml(f"<a>{long}x</a>")


def test_our_own_depth_bound_holds_without_that_of_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_DEPTH", 3)
    assert event_from_xml("<a><b><c/></b></a>").attributes == {"b/c": ("",)}
    with pytest.raises(ContentError, match="element 'd', line 2: elements are nested deeper than 3"):
        event_from_xml("<a><b><c>\n<d/></c></b></a>")


@pytest.mark.parametrize(
    "document",
    [
        '<?xml version="1.0" encoding="UTF-16"?><a>é</a>'.encode("utf-16"),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>',
        '<?xml version="1.0" encoding="no-such"?><a>é</a>',
        '\ufeff<?xml version="1.0"?><a>é</a>',
        "\ufeff<a>é</a>".encode(),
    ],
)
def test_bytes_have_the_encoding_they_declare_and_a_str_has_none(document: bytes | str) -> None:
    assert event_from_xml(document).attributes == {".": ("é",)}


@given(st.binary() | st.text() | st.text("<>/ab=\"'&;![]-? x1").map(lambda rest: f"<a>{rest}</a>"))
@example("<a>]]></a>")
def test_whatever_is_read_gives_an_event_or_a_content_error(document: bytes | str) -> None:
    with contextlib.suppress(ContentError):
        assert isinstance(event_from_xml(document), Event)


# Schemas

XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
CD_SCHEMA = f"""<?xml version="1.0" encoding="UTF-8"?>
<xs:schema {XS} targetNamespace="urn:cd" xmlns:cd="urn:cd" elementFormDefault="qualified">
  <xs:annotation><xs:documentation>What a <b xmlns="urn:html">CD</b> is.</xs:documentation></xs:annotation>
  <xs:simpleType name="Price"><xs:restriction base="cd:Amount"><xs:maxInclusive value="100"/></xs:restriction>
  </xs:simpleType>
  <xs:simpleType name="Amount"><xs:restriction base="xs:decimal"><xs:minInclusive value="0"/></xs:restriction>
  </xs:simpleType>
  <xs:complexType name="Info">
    <xs:choice maxOccurs="unbounded">
      <xs:element name="label" type="xs:token"/>
      <xs:sequence><xs:element name="part" type="cd:Info"/></xs:sequence>
    </xs:choice>
    <xs:attribute name="year" type="xs:gYear"/>
    <xs:attribute name="pages"><xs:simpleType><xs:restriction>
      <xs:simpleType><xs:restriction base="xs:short"/></xs:simpleType></xs:restriction></xs:simpleType></xs:attribute>
  </xs:complexType>
  <xs:element name="code" type="xs:string"/>
  <xs:element name="CD">
    <xs:complexType>
      <xs:all>
        <xs:element ref="cd:code" minOccurs="0"/>
        <xs:element name="price" type="cd:Price" minOccurs="0"/>
        <xs:element name="info" type="cd:Info" minOccurs="0"/>
        <xs:element name="sold" type="xs:boolean" minOccurs="0"/>
        <xs:element name="count" type="xs:integer" default="5" minOccurs="0"/>
        <xs:element name="score" type="xs:double" minOccurs="0"/>
        <xs:element name="day" type="xs:date" minOccurs="0"/>
        <xs:element name="empty" minOccurs="0"><xs:complexType/></xs:element>
        <xs:element name="size" minOccurs="0"><xs:complexType><xs:simpleContent>
          <xs:extension base="xs:unsignedByte">
            <xs:attribute name="unit" type="xs:int"/><xs:attribute name="note"/>
          </xs:extension>
        </xs:simpleContent></xs:complexType></xs:element>
      </xs:all>
      <xs:attribute name="id" type="xs:int" use="required"/>
    </xs:complexType>
  </xs:element>
</xs:schema>"""
SCHEMA = Schema.from_xsd(CD_SCHEMA.encode())


def cd(content: str) -> str:
    return f'<CD xmlns="urn:cd" id="007">{content}</CD>'


@pytest.mark.parametrize(
    ("content", "attributes"),
    [
        ("", {".": ("",)}),
        ("<code>18</code>", {"code": ("18",)}),
        ("<code> a  b </code>", {"code": (" a  b ",)}),
        ("<price>18</price>", {"price": (18.0,)}),
        ("<sold>1</sold>", {"sold": (True,)}),
        ("<sold> false </sold>", {"sold": (False,)}),
        ("<count>+0009223372036854775807</count>", {"count": (2**63 - 1,)}),
        ("<count>-00</count>", {"count": (0,)}),
        ("<score>INF</score>", {"score": (math.inf,)}),
        ("<score>-INF</score>", {"score": (-math.inf,)}),
        ("<score>1e3</score>", {"score": (1000.0,)}),
        ("<day>1999-02-27</day>", {"day": ("1999-02-27",)}),
        ("<empty/>", {"empty": ("",)}),
        ('<size unit="012" note="5">12</size>', {"size/@unit": (12,), "size/@note": ("5",), "size": (12,)}),
        (
            '<info year="1959" pages="012"><label> 5  6 </label><part><label>7</label></part></info>',
            {"info/@year": ("1959",), "info/@pages": (12,), "info/label": ("5 6",), "info/part/label": ("7",)},
        ),
    ],
)
def test_a_schema_decides_types(content: str, attributes: dict[str, tuple[Scalar, ...]]) -> None:
    assert exactly(event_from_xml(cd(content), SCHEMA)) == exactly(Event("CD", {"@id": (7,), **attributes}))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (cd("\n<price>dear</price>"), "line 2"),
        (cd("<price>101</price>"), "maxInclusive"),
        (cd("<other/>"), "other"),
        ("<CD/>", "No matching global declaration"),
        ('<CD xmlns="urn:cd"/>', "'id'"),
        (
            cd("<count>9223372036854775808</count>"),
            "line 1: the text is an integer beyond 64 bits: 9223372036854775808",
        ),
        (cd(f"<count>-{'9' * 5000}</count>"), "beyond 64 bits: -999"),
        (cd("<count/>"), "element 'count', line 1: the text is empty"),
        (cd("<score>NaN</score>"), "the text is NaN"),
        (cd("<score>1e999</score>"), "beyond the range of 64-bit floats: 1e999"),
        ("<CD", "well-formed"),
        (
            f'<new xmlns:i="http://www.w3.org/2001/XMLSchema-instance" {XS} i:type="xs:int">5</new>',
            "Element 'new': No matching global declaration",
        ),
    ],
)
def test_what_does_not_fit_a_schema_is_refused(document: str, reason: str) -> None:
    with pytest.raises(ContentError) as problem:
        event_from_xml(document, SCHEMA)
    assert reason in str(problem.value)


def schema(content: str) -> str:
    return f"<xs:schema {XS}>\n{content}</xs:schema>"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("<xs:schema", "the schema is not well-formed"),
        ("<a/>", "element 'a', line 1"),
        (f"<xs:element {XS} name='a'/>", "element 'element', line 1"),
        (f"<!DOCTYPE a><xs:schema {XS}/>", "the schema has a DOCTYPE"),
        (" " * ((1 << 20) + 1), "the schema is longer"),
        (schema("<a/>"), "element 'a', line 2"),
        (schema("<xs:schema/>"), "element 'schema', line 2"),
        (schema("<xs:import namespace='u' schemaLocation='file:///etc/hostname'/>"), "'import', line 2"),
        (schema("<xs:include schemaLocation='http://127.0.0.1:9/'/>"), "'include', line 2"),
        (schema("<xs:redefine schemaLocation='u'/>"), "'redefine'"),
        (schema("<xs:group name='g'><xs:sequence/></xs:group>"), "'group'"),
        (schema("<xs:attributeGroup name='g'/>"), "'attributeGroup'"),
        (schema("<xs:simpleType name='s'><xs:list itemType='xs:int'/></xs:simpleType>"), "'list'"),
        (schema("<xs:simpleType name='s'><xs:union memberTypes='xs:int'/></xs:simpleType>"), "'union'"),
        (schema("<xs:complexType name='c'><xs:complexContent/></xs:complexType>"), "'complexContent'"),
        (schema("<xs:complexType name='c'><xs:sequence><xs:any/></xs:sequence></xs:complexType>"), "'any'"),
        (schema("<xs:element name='a'/>"), "'a' is declared without a type"),
        (schema("<xs:element name='a' type='xs:anyType'/>"), "'anyType' is not understood"),
        (schema("<xs:element name='a' type='xs:NMTOKENS'/>"), "'NMTOKENS' is not understood"),
        (schema("<xs:element name='a' type='xs:int' abstract='true'/>"), "'abstract' is not understood"),
        (
            schema("<xs:element name='a' type='xs:int'/><xs:element name='b' substitutionGroup='a'/>"),
            "'substitutionGroup' is not understood",
        ),
        (
            schema(
                "<xs:complexType name='c'><xs:simpleContent><xs:extension base='xs:int'/></xs:simpleContent>"
                "</xs:complexType><xs:element name='a'><xs:complexType><xs:simpleContent><xs:extension base='c'/>"
                "</xs:simpleContent></xs:complexType></xs:element>"
            ),
            "'c' is not a restriction of a built-in type",
        ),
        (schema("<xs:element name='a' type='Missing'/>"), "the schema is not valid"),
        (schema("<xs:element name='a' type='xs:no-such'/>"), "the schema is not valid"),
        (schema("<xs:element name='a' ref='b'/>"), "the schema is not valid"),
    ],
)
def test_a_schema_that_is_not_understood_is_refused(source: str, reason: str) -> None:
    with pytest.raises(ContentError) as problem:
        Schema.from_xsd(source)
    assert reason in str(problem.value)


def test_a_long_chain_of_types_is_read() -> None:
    """Types refer to types: neither a chain of complex nor one of simple types may exhaust the stack."""
    links = "".join(
        f"<xs:complexType name='c{i}'><xs:sequence><xs:element name='e' type='c{i + 1}' minOccurs='0'/>"
        f"</xs:sequence></xs:complexType>"
        f"<xs:simpleType name='s{i}'><xs:restriction base='s{i + 1}'/></xs:simpleType>"
        for i in range(1500)
    )
    ends = "<xs:complexType name='c1500'/><xs:simpleType name='s1500'><xs:restriction base='xs:int'/></xs:simpleType>"
    roots = "<xs:element name='c' type='c0'/><xs:element name='s' type='s0'/>"
    chain = Schema.from_xsd(schema(links + ends + roots))
    assert event_from_xml("<c><e><e/></e></c>", chain).attributes == {"e/e": ("",)}
    assert event_from_xml("<s>0005</s>", chain).attributes == {".": (5,)}
