"""Wishes and orders: who is asked again when, and what is sent how often."""

from roamcast.protocols.opportunistic.requests import MAX_ORDERS, MAX_WISHES, Orders, Wishes


def test_one_at_a_time_and_another_after_a_while() -> None:
    wishes = Wishes(patience=10)
    wishes.ask(5, 1)
    assert [wishes.may_ask(now, 1) for now in (5, 14, 15)] == [False, False, True]
    assert wishes.may_ask(5, 2)
    wishes.ask(20, 1)
    wishes.forget(1)
    assert wishes.may_ask(21, 1)


def test_without_patience_everybody_is_asked() -> None:
    wishes = Wishes(patience=0)
    wishes.ask(5, 1)
    assert wishes.may_ask(5, 1)
    assert len(wishes) == 0


def test_a_piece_is_sent_once_between_two_announces() -> None:
    orders = Orders()
    assert orders.add(1, 0b11)
    assert orders.add(2, 0b1)
    assert orders.add(1, 0b110)  # while it waits, requests for the same document are one
    assert orders.take() == (1, 0b111)
    assert not orders.add(1, 0b101)
    assert orders.add(1, 0b1001)
    assert [orders.take(), orders.take(), orders.take()] == [(2, 0b1), (1, 0b1000), None]
    orders.announced()
    assert orders.add(1, 0b1)


def test_what_was_not_sent_after_all_may_be_asked_for_again() -> None:
    orders = Orders()
    orders.add(1, 0b111)
    orders.take()
    orders.put_back(1, 0b010)
    orders.put_back(2, 0b1)
    assert not orders.add(1, 0b101)
    assert orders.add(1, 0b111)
    assert orders.take() == (1, 0b010)


def test_both_are_bounded() -> None:
    wishes, orders = Wishes(10), Orders()
    for id in range(2 * MAX_ORDERS):
        wishes.ask(0, id)
        orders.add(id, 1)
    assert (len(wishes), len(orders)) == (MAX_WISHES, MAX_ORDERS)
    assert orders.take() == (0, 1)  # who came first is served
