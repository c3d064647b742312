"""What the judge's tests know of measures; real campaigns say it in `measures/about.json`."""

from roamcast.campaign.measured import About, Measured

SHARES = ("delivery", "satisfaction_1800", "lost_collision", "mdr", "tree_reach")
MEASURED = Measured(
    {name: About(name=name, share=True) for name in SHARES}
    | {name: About(name=name, share=True, floor=0.01) for name in ("tree_connected", "tree_matched")}
)
