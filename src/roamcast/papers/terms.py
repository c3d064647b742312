"""The points and places of curves that the terms of a claim refer to.

The rule this file owns: if a choice depends on the values, such as the best point or the place where a curve reaches a
value, all candidates are given.
"""

from dataclasses import dataclass

from roamcast.papers.claims import Term
from roamcast.statistics.curves import CurvePoint, Curves, Missing, place_name


@dataclass(frozen=True)
class Crossing:
    """The place on a curve where another measure first reaches a value."""

    values: list[CurvePoint]
    """The curve."""
    levels: list[CurvePoint]
    """The other measure at the same points."""
    target: float | CurvePoint
    """The value, or the point that has it: the same measure of the term on the left of a comparison."""
    place: str


class ClaimedCurves(Curves):
    """Curves that can be asked for the terms of a claim."""

    def points(self, term: Term) -> list[CurvePoint]:
        """The points that a term refers to, in the order of the axis; for the best, all candidates."""
        points = self._curve(term, term.measure)
        match term.at:
            case None | "best":
                return points
            case "first":
                return points[:1]
            case "last":
                return points[-1:]
            case axes:
                chosen = [point for point in points if axes.items() <= point.axes.items()]
                if not chosen:
                    raise Missing(f"{term.variant} in {term.experiment} has no point {place_name(axes)}")
                return chosen

    def beside(self, term: Term, point: CurvePoint, measure: str) -> CurvePoint:
        """Another measure at a point of a term's curve."""
        for other in self._curve(term, measure):
            if other.number == point.number:
                return other
        raise Missing(f"{measure} of {term.variant} in {term.experiment} was not measured at {point.place}")

    def opposite(self, of: Term, left: CurvePoint, than: Term) -> CurvePoint | Crossing | None:
        """What a point of `of` is compared with; None if there is nothing."""
        if than.reaching is not None:
            if than.reaching.value is not None:
                return self.crossing(than)
            level = self.beside(of, left, than.reaching.measure)
            return self.crossing(than, level, left.place)
        points = self.points(than)
        level_line = not points[0].axes
        if level_line or than.at is not None:
            return points[0]
        return next((point for point in points if point.axes == left.axes), None)

    def crossing(self, term: Term, level: CurvePoint | None = None, place: str = "") -> Crossing:
        """The place of a term that is defined by what it reaches: a value, or the level of another curve."""
        reaching = term.reaching
        assert reaching is not None
        values = self._curve(term, term.measure)
        levels = [self.beside(term, point, reaching.measure) for point in values]
        if level is not None:
            return Crossing(values, levels, level, place)
        assert reaching.value is not None
        return Crossing(values, levels, reaching.value, f"where {reaching.measure} = {reaching.value:.3g}")

    def _curve(self, term: Term, measure: str) -> list[CurvePoint]:
        points = self.curves.get((term.experiment, term.variant, measure))
        if points is None:
            raise Missing(f"{measure} of {term.variant} in {term.experiment} was not measured")
        return points
