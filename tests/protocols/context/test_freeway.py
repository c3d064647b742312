"""The paper's own example, its Figure 1a. A mile is 100 m here, and the road goes along y = 0."""

from protocols.context.places import Places
from roamcast.content.event import Scalar

ACCIDENT, X, STATION_30, STATION_25 = 1, 2, 30, 25
WEST = 50
ROAD = "within(rect(2000, -20, 3300, 20))"


def freeway() -> Places:
    """Cars going east each mile from 20 to 33, one going west at mile 21.5; the car in the accident at mile 32; two
    stations of the highway patrol beside the road; X on a parking lot near mile 24."""
    east = {100 + mile: (100.0 * mile, 0.0) for mile in range(20, 34)}
    places = {
        **east,
        ACCIDENT: (3200.0, 5.0),
        X: (2400.0, 90.0),
        STATION_30: (3000.0, 60.0),
        STATION_25: (2500.0, 60.0),
        WEST: (2150.0, -10.0),
    }
    attributes: dict[int, dict[str, Scalar]] = {
        **{car: {"heading": "east", "occupants": 1 + car % 2} for car in east},
        ACCIDENT: {"heading": "east"},
        WEST: {"heading": "west"},
    }
    road = Places(places, 160, {"margin": 30.0, "reach": 160.0}, attributes)
    road.wait(10)
    return road


def publish_accident(road: Places) -> None:
    road.publish(ACCIDENT, 1, lifetime=600, relevant='within(rect(2000, -20, 3200, 20)) and heading = "east"')


def test_a_car_that_asks_about_its_road_learns_of_an_accident_that_happened_before() -> None:
    road = freeway()
    publish_accident(road)
    road.wait(60)
    road.subscribe(X, lifetime=300, interest="within(rect(2200, -20, 2600, 20))")
    road.wait(10)
    assert road.got(X) == [1]


def test_and_one_that_asked_before_learns_of_it_as_well() -> None:
    road = freeway()
    road.subscribe(X, lifetime=300, interest="within(rect(2200, -20, 2600, 20))")
    road.wait(7)
    publish_accident(road)
    road.wait(10)
    assert road.got(X) == [1]


def test_who_asks_about_a_place_where_only_cars_going_west_are_does_not() -> None:
    road = freeway()
    publish_accident(road)
    road.subscribe(X, lifetime=300, interest="within(rect(2130, -20, 2170, 20))")
    road.wait(20)
    assert road.got(X) == []
    road.attributes[WEST]["heading"] = "east"  # it turns round
    road.wait(20)
    assert road.got(X) == [1]


def test_the_station_whose_section_it_is_gets_it_and_the_other_does_not() -> None:
    road = freeway()
    road.subscribe(STATION_30, interest=ROAD, publishers="within(rect(2800, -20, 3300, 20))")
    road.subscribe(STATION_25, interest=ROAD, publishers="within(rect(2300, -20, 2800, 20))")
    road.wait(5)
    publish_accident(road)
    road.wait(20)
    assert road.got(STATION_30) == [1]
    assert road.got(STATION_25) == []
    assert road.sent("matching-request")


def test_the_later_event_reaches_only_cars_with_one_occupant() -> None:
    road = freeway()
    cars = range(122, 132)
    for car in cars:
        road.subscribe(car, lifetime=300, interest=ROAD)
    road.wait(5)
    road.publish(STATION_30, 2, lifetime=300, relevant="within(rect(2000, -20, 3200, 20))", subscribers="occupants = 1")
    road.wait(20)
    assert {car for car in cars if road.got(car) == [2]} == {122, 124, 126, 128, 130}
    assert all(road.got(car) == [] for car in cars if car % 2)
