"""What is loaded once, before Spark's workers are forked."""

from pathlib import Path

from roamcast.campaign.define import sources
from roamcast.campaign.define.identity import code
from roamcast.pipeline.worker_daemon import _warm_sources
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import check

RUN = {"nodes": 2, "duration": 1, "area": {"width": 1, "height": 1}}


def test_no_run_has_to_parse_the_sources_of_its_protocol_again() -> None:
    _warm_sources()
    parsed = sources._imported.cache_info().misses
    for name in CATALOGUE:
        assert code(check({**RUN, "protocol": {"name": name}}, "test", Path()), {})
    assert sources._imported.cache_info().misses == parsed
