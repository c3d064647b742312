"""What is loaded once, before Spark's workers are forked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roamcast.campaign.define import sources
from roamcast.campaign.define.identity import code
from roamcast.pipeline import SIMULATES
from roamcast.pipeline.worker_daemon import _warm_sources, prefer_installed
from roamcast.protocols.catalogue import CATALOGUE
from roamcast.sim.scenario.scenario import check

RUN = {"nodes": 2, "duration": 1, "area": {"width": 1, "height": 1}}


def test_no_run_has_to_parse_the_sources_of_its_protocol_again() -> None:
    _warm_sources()
    parsed = sources._imported.cache_info().misses
    for name in CATALOGUE:
        assert code(check({**RUN, "protocol": {"name": name}}, "test", Path()), {})
    assert sources._imported.cache_info().misses == parsed


@pytest.mark.parametrize("simulates", [False, True])
def test_only_workers_that_simulate_load_the_simulator(simulates: bool) -> None:
    code = """
import sys
from roamcast.pipeline.worker_daemon import warm
warm()
print(*(name in sys.modules for name in ("roamcast.analysis.kernels", "roamcast.sim.core.kernel")))
"""
    environment = {name: value for name, value in os.environ.items() if name != SIMULATES}
    environment |= {SIMULATES: "1"} if simulates else {}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", str(simulates)]


def test_workers_import_the_installed_pyspark_rather_than_its_zip_file(tmp_path: Path) -> None:
    installed, spark_home = tmp_path / "site-packages", tmp_path / "opt" / "spark"
    (installed / "pyspark").mkdir(parents=True)
    (installed / "pyspark" / "__init__.py").touch()
    zip_in_package = str(installed / "pyspark" / "python" / "lib" / "pyspark.zip")
    zip_of_a_cluster = str(spark_home / "python" / "lib" / "pyspark.zip")
    path = ["", "/usr/lib/python311.zip", zip_of_a_cluster, str(installed)]
    assert prefer_installed([zip_in_package, *path]) == path
