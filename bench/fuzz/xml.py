"""Hostile XML: whatever the text, reading it gives an event or a `ContentError`.

Run as a module (`python -m`), never as a file: its name would hide the standard library's `xml`.
"""

import contextlib
import random
from collections.abc import Iterator
from typing import Final

from bench.fuzz.making import any_unicode, mixed, mutated
from roamcast.content.xml import event_from_xml
from roamcast.errors import ContentError

SEEDS: Final = (
    '<CD id="001"><category>jazz</category><info year="1959"><label>X</label></info><price>18.00</price></CD>',
    '<?xml version="1.0" encoding="UTF-8"?><r xmlns="urn:x" xmlns:p="urn:y"><p:a p:b="true">-1e3</p:a><a/></r>',
    "<t><!-- no --><a><![CDATA[<&]]>x</a><?pi x?><b>&lt;&#233;</b>\n</t>",
    '<!DOCTYPE a [<!ENTITY e "x"><!ENTITY f "&e;&e;">]><a x="&f;">&f;</a>',
    '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///no-such"> %p;]><a/>',
)
TOKENS: Final = (
    *("<", ">", "/", "</", "/>", "<a", "<a>", "</a>", "<b/>", 'x="1"', "x='", "=", '"', "&", ";", "&amp;", "&e;", "&#"),
    *("<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<?xml ", 'version="1.0"', 'encoding="UTF-16"', "<!DOCTYPE a"),
    *("<!ENTITY e ", "<!ENTITY % e ", "SYSTEM", "]", "xmlns", "xmlns:p", "p:", ":", " ", "\n", "\0", "\ufeff"),
    *("&#x", "[", "\ud800", "NaN", "1", "-0", "1e999", "9" * 25, "true", "é", "\uffff", "\U0001f3b7", "-", "--", "%e;"),
)  # fmt: skip


def _mutation(rng: random.Random) -> str:
    return mutated(rng, SEEDS, TOKENS)


def _soup(rng: random.Random) -> str:
    return "".join(rng.choices(TOKENS, k=rng.randint(1, 12)))


def _nesting(rng: random.Random) -> str:
    depth = rng.choice((1, 2, 10, 255, 256, 257, 400))
    tag = rng.choice(("a", "a x='1'", "p:a", "a xmlns='u'"))
    return f"<{tag}>" * depth + rng.choice(TOKENS) + "</a>" * (depth + rng.choice((-1, 0, 0, 0, 1)))


def _unicode(rng: random.Random) -> str:
    return any_unicode(rng, ("{}", "<a>{}</a>", "<a{}/>", "<{}/>", "<a x='{}'/>"))


def inputs(rng: random.Random) -> Iterator[str]:
    return mixed(rng, {_mutation: 10, _soup: 8, _nesting: 1, _unicode: 4})


def read(text: str) -> None:
    """As text and, where it has bytes, as bytes, which take their encoding from what they declare."""
    with contextlib.suppress(ContentError):
        event_from_xml(text)
    with contextlib.suppress(ContentError):
        event_from_xml(text.encode("utf-8", "surrogatepass"))
