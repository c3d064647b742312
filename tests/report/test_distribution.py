"""A distribution as a figure."""

from lxml import etree

from roamcast.report.distribution import distribution


def test_each_curve_has_its_points_and_its_name() -> None:
    curves = {"contacts": [[1.0, 1.0], [10.0, 0.25]], "until the next": [], "b": [[1, 0.5]]}
    drawn = distribution("Contacts of t", curves, x="time (s)", y="share that lasts longer", logarithmic=True)
    root = etree.fromstring(drawn.encode())
    words = [str(text) for text in root.itertext()]
    assert {"Contacts of t", "contacts", "b", "share that lasts longer"} <= set(words)
    assert any(word.startswith("time (s)") for word in words)
    assert "until the next" not in words
