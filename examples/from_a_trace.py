"""From somebody's recording to a comparison of three protocols on it, as in a notebook."""

import tempfile
from pathlib import Path

from roamcast.campaign.experiment import experiment
from roamcast.pipeline.run import run_campaign
from roamcast.pipeline.session import session
from roamcast.pipeline.tables import load
from roamcast.pipeline.traces.describe import describe
from roamcast.pipeline.traces.importing import import_trace

HERE = Path(__file__).parent
folder = Path(tempfile.mkdtemp())

COMPARED = {
    "name": "rides",
    "seeds": 3,
    "measures": ["delivery", "overhead"],
    "scenario": {
        "nodes": 25,
        "duration": 60,
        "area": {"width": 804, "height": 804},
        # A minute and 25 of the vehicles that are there then, both drawn by the seed: so the intervals contain what
        # another minute and other vehicles would change.
        "movement": {"model": "recorded", "file": "rides.trace", "window": 60, "subset": "drawn"},
        "radio": {"range": 200},
        "workload": {"subscribers": [{"count": 10}], "publishers": [{"count": 5, "rate": 0.5}]},
    },
    "variants": [
        {"name": "flooding"},
        {"name": "gossip 0.6", "set": {"protocol.name": "gossip", "protocol.parameters.p": 0.6}},
        {"name": "hint", "set": {"protocol.name": "hint"}},
    ],
}

with session() as spark:
    about = import_trace(spark, HERE / "traces" / "grid.fcd.xml.gz", folder / "rides.trace")
    print(f"{about.nodes} vehicles, {about.span:g} s, {about.rows} legs")
    speed = describe(spark, folder / "rides.trace", reach=None)["speed"]  # with a range, also islands and contacts
    print(f"{speed['mean']:.1f} m/s on average, {speed['p50']:.1f} m/s in the middle")
    failures = run_campaign([experiment(COMPARED, "rides", folder)], folder / "out", spark=spark)
    assert not failures

results = load(folder / "out").results.to_pandas()
print(results.groupby("variant")[["delivery", "overhead"]].mean().round(3))
