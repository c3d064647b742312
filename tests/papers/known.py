"""What the judge's tests know of measures; real campaigns say it in `measures/about.json`."""

import dataclasses

import msgspec

from roamcast import papers
from roamcast.analysis.measures.catalogue import MeasureCatalogue
from roamcast.analysis.measures.measure import Measure, Measures
from roamcast.campaign.define.experiment import Experiment, check_measures

SHARES = ("delivery", "satisfaction_1800", "lost_collision", "mdr", "tree_reach")
MEASURED = Measures(
    {name: Measure(name=name, share=True) for name in SHARES}
    | {name: Measure(name=name, share=True, floor=0.01) for name in ("tree_connected", "tree_matched")}
)


def load_checked(paper: str) -> dict[str, Experiment]:
    """The experiments of a paper with the names of their measures, all of which exist."""
    catalogue = MeasureCatalogue()  # of its own: measures of files stay in it
    found = {}
    for one in papers.load([paper]):
        names = catalogue.names(one.spec.measures or (), one.folder, one.source)
        found[one.name] = dataclasses.replace(one, spec=msgspec.structs.replace(one.spec, measures=names))
    check_measures(list(found.values()), catalogue)
    return found
