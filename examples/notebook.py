"""The same from Python, as in a notebook: a run, a campaign, its results as a DataFrame, a figure."""

import tempfile
from pathlib import Path

import roamcast
from roamcast.report import draw

HERE = Path(__file__).parent

# One run: its facts are Arrow tables, and numpy columns.
run = roamcast.run(HERE / "flooding.toml")
print(run.table("deliver").slice(0, 3).to_pandas())
print(run)

# A campaign: 27 small runs on Spark, measured over three seeds.
out = Path(tempfile.mkdtemp()) / "ranges"
campaign = roamcast.run_campaign(HERE / "campaigns" / "range.toml", out)
print(campaign.results.to_pandas().groupby(["variant", "range"])[["delivery", "overhead"]].mean())

# A figure as SVG; in a notebook: IPython.display.SVG(draw(out, "delivery"))
figure = out / "delivery.svg"
figure.write_text(draw(out, "delivery"))
print(f"\nfigure: {figure.name}, {figure.stat().st_size} bytes")
