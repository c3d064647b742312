"""Many tests, one error rate: Holm's correction.

The rule this file owns: the probability that any p-value of a true hypothesis is at or below `alpha` after the
correction is at most `alpha`, however many there are and however they depend on each other. The least of n p-values is
multiplied by n, the next by n − 1, and so on; none becomes less than the one before it.
S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.
"""

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """The corrected p-values, in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected = [1.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[index]))
        corrected[index] = least
    return corrected
