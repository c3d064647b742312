import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from roamcast.report.markup import Markup, join, tag


def test_text_and_attributes_are_escaped() -> None:
    made = tag("p", "<b> & \"quoted\" 'too'", title='"><script>')
    assert made == ('<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt; &amp; &quot;quoted&quot; &#x27;too&#x27;</p>')


def test_elements_nest_and_names_of_attributes_are_spelt_out() -> None:
    inner = tag("path", d="M0 0", stroke_width=2, class_="a b")
    assert tag("svg", inner, None, viewBox="0 0 1 1", hidden=True, role=None, open=False) == (
        '<svg viewBox="0 0 1 1" hidden><path d="M0 0" stroke-width="2" class="a b"></path></svg>'
    )


def test_an_attribute_of_zero_is_written() -> None:
    assert tag("g", tabindex=0, x=0.0) == '<g tabindex="0" x="0.0"></g>'


def test_empty_elements_have_no_end() -> None:
    assert join(tag("meta", charset="utf-8"), tag("br")) == '<meta charset="utf-8"><br>'


def test_control_characters_of_a_terminal_are_replaced() -> None:
    assert tag("p", "\x1b[31mred\x00\ttab\n") == "<p>\ufffd[31mred\ufffd\ttab\n</p>"


@given(st.text())
def test_any_text_is_read_back_as_text_and_nothing_else(text: str) -> None:
    made = tag("p", text, title=text)
    assert isinstance(made, Markup)
    for element in (ET.fromstring(made), html.fragment_fromstring(made)):
        assert element.tag == "p"
        assert len(element) == 0
        assert set(element.keys()) == {"title"}
