"""What a campaign's time went into."""

import time

import pytest

from roamcast.campaign.account import Account


def test_a_stage_that_comes_again_adds_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 10.0, 11.0, 20.0, 23.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    account = Account()
    for name in ("simulate", "measure", "simulate"):
        with account.stage(name):
            pass
    assert list(account.seconds.items()) == [("simulate", 5.0), ("measure", 1.0)]


def test_a_stage_that_fails_counts_too() -> None:
    account = Account()
    with pytest.raises(RuntimeError), account.stage("simulate"):
        raise RuntimeError
    assert list(account.seconds) == ["simulate"]
