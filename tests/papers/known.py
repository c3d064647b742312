"""What the judge's tests know of measures; real campaigns say it in `measures/about.json`."""

from roamcast.analysis.measures.measure import Measure, Measures

SHARES = ("delivery", "satisfaction_1800", "lost_collision", "mdr", "tree_reach")
MEASURED = Measures(
    {name: Measure(name=name, share=True) for name in SHARES}
    | {name: Measure(name=name, share=True, floor=0.01) for name in ("tree_connected", "tree_matched")}
)
