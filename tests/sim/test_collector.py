"""The collector is off while it can find nothing, seldom at work in a run, and then as it was before."""

import gc
from collections.abc import Iterator

import pytest

from roamcast.sim import collector


@pytest.fixture(autouse=True)
def on_afterwards() -> Iterator[None]:
    yield
    gc.enable()


def test_it_is_off_inside_and_on_again_afterwards() -> None:
    with collector.paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_when_something_goes_wrong() -> None:
    with pytest.raises(ZeroDivisionError), collector.paused():
        1 // 0  # noqa: B018  # raises
    assert gc.isenabled()


def test_who_has_it_off_keeps_it_off() -> None:
    gc.disable()
    with collector.paused():
        pass
    assert not gc.isenabled()


def test_it_starts_seldom_inside_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with collector.seldom():
        assert gc.get_threshold() == (collector.MANY, *before[1:])
        assert gc.isenabled()
    assert gc.get_threshold() == before


def test_it_starts_as_before_when_something_goes_wrong() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), collector.seldom():
        1 // 0  # noqa: B018  # raises
    assert gc.get_threshold() == before
