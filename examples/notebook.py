"""The same from Python, as in a notebook: a run, a campaign, its measures as a DataFrame, a figure."""

import tempfile
from pathlib import Path

import pandas as pd

from roamcast.campaign.plan import load_experiment
from roamcast.facts.sinks import MemorySink
from roamcast.facts.summary import summarise
from roamcast.pipeline.run import run_campaign
from roamcast.report import draw
from roamcast.sim.run import run
from roamcast.sim.scenario import load

HERE = Path(__file__).parent

# One run: its facts are Arrow tables.
scenario = load(HERE / "flooding.toml")
facts = MemorySink()
run(scenario, facts)
print(facts.table("deliver").slice(0, 3).to_pandas())
print(f"delivery: {summarise(facts.tables(), scenario.warmup).delivery:.3f}\n")

# A campaign: 27 small runs on Spark, measured over three seeds.
out = Path(tempfile.mkdtemp()) / "ranges"
failures = run_campaign([load_experiment(HERE / "campaigns" / "range.toml")], out)
assert not failures

# Its measures are Parquet: pandas, Spark or anything else reads them.
summary = pd.read_parquet(out / "measures" / "summary.parquet")
delivery = summary[summary.measure == "delivery"]
print(delivery[["variant", "axes", "n", "mean", "low", "high"]].to_string(index=False))

# A figure as SVG; in a notebook: IPython.display.SVG(draw(out, "delivery"))
figure = out / "delivery.svg"
figure.write_text(draw(out, "delivery"))
print(f"\nfigure: {figure.name}, {figure.stat().st_size} bytes")
