"""How often the judge is wrong: claims on their borders, simulated at length, with normal and with other values.

Every condition of a claim is *above 0*, and what is measured is 0 on average, exactly on the border. `refuted` is how
often at least one of the points is found below: without a correction, and with Holm's. `accepted` is how often a claim
passes that has one point on the border, which is not above it, and all others far above. The second table has the
greatest of several equal numbers: how often it is found above 0, by a bootstrap of the greatest, and by Bonferroni,
which the judge takes. The third has how often an interval of a mean covers it, by counts of a resample and by t.
The last has looking after every few seeds until an interval excludes 0.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from roamcast.statistics.bootstrap import weights
from roamcast.statistics.intervals import t_quantile
from roamcast.statistics.sequential import Looks

Array = npt.NDArray[np.float64]
CLAIMS: Final = 20_000
BOOTSTRAPPED: Final = 1_000
ALPHA: Final = 0.025
DRAWS: Final = 4_000

VALUES: Final[dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "skewed": lambda rng, shape: rng.exponential(1, shape) - 1,
    "share near 1": lambda rng, shape: rng.beta(9, 1, shape) - 0.9,
}


def t_values(values: Array) -> Array:
    """Of the last dimension."""
    n = values.shape[-1]
    found: Array = values.mean(axis=-1) / (values.std(axis=-1, ddof=1) / n**0.5)
    return found


def refuted(t: Array, seeds: int, times: int) -> float:
    """How often one is below 0 at 1 / `times` of the chance of an error."""
    return float((t.min(axis=1) < -t_quantile(1 - 2 * ALPHA / times, seeds - 1)).mean())


def points() -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    print(f"{'values':<14}{'seeds':>6}{'points':>8}{'refuted, uncorrected':>22}{'corrected':>11}{'accepted':>10}")
    for name, draw in VALUES.items():
        for seeds in (5, 10):
            for count in (1, 5, 30):
                t = t_values(draw(rng, (CLAIMS, count, seeds)))
                accepted = (t[:, 0] > t_quantile(1 - 2 * ALPHA, seeds - 1)).mean()
                rates = (refuted(t, seeds, 1), refuted(t, seeds, count), accepted)
                print(
                    f"{name:<14}{seeds:>6}{count:>8}"
                    + "".join(f"{rate:>{w}.1%}" for rate, w in zip(rates, (22, 11, 10), strict=True))
                )


def greatest() -> None:
    rng = np.random.Generator(np.random.PCG64(2))
    print(f"{'seeds':>6}{'numbers':>9}{'own interval':>14}{'bootstrap':>11}{'Bonferroni':>12}")
    for seeds in (3, 5, 10):
        drawn = weights(seeds, DRAWS) - 1 / seeds
        for count in (2, 5, 20):
            wrong = np.zeros(3)
            for _ in range(BOOTSTRAPPED):
                values = rng.standard_normal((seeds, count))
                error = values.std(axis=0, ddof=1) / seeds**0.5
                t = float((values.mean(axis=0) / error).max())
                draws = ((drawn @ (values - values.mean(axis=0))) / error).max(axis=1)
                wrong += (
                    t > t_quantile(1 - 2 * ALPHA, seeds - 1),
                    bool((draws >= t).mean() <= ALPHA),
                    t > t_quantile(1 - 2 * ALPHA / count, seeds - 1),
                )
            rates = wrong / BOOTSTRAPPED
            print(f"{seeds:>6}{count:>9}{rates[0]:>14.1%}{rates[1]:>11.1%}{rates[2]:>12.1%}")


def resamples() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    print(f"{'seeds':>6}{'resampled':>11}{'weights of t':>14}")
    for seeds in (3, 5, 10):
        counts = rng.multinomial(seeds, [1 / seeds] * seeds, DRAWS) / seeds
        covered = np.zeros(2)
        for _ in range(BOOTSTRAPPED):
            values = rng.standard_normal(seeds)
            for which, drawn in enumerate((counts, weights(seeds, DRAWS))):
                low, high = np.quantile(drawn @ values, (ALPHA, 1 - ALPHA))
                covered[which] += low <= 0 <= high
        print(f"{seeds:>6}{covered[0] / BOOTSTRAPPED:>11.1%}{covered[1] / BOOTSTRAPPED:>14.1%}")


def looking() -> None:
    rng = np.random.Generator(np.random.PCG64(4))
    print(f"{'looks at':<28}{'95 % at each':>14}{'spent':>8}")
    for looks in ([10], [5, 10], [3, 5, 8, 10, 15, 20, 25, 30], list(range(3, 31))):
        values = rng.standard_normal((CLAIMS, looks[-1]))
        t = np.stack([np.abs(t_values(values[:, :n])) for n in looks])
        plain = np.array([t_quantile(0.95, n - 1) for n in looks])[:, np.newaxis]
        spent = [t_quantile(level, n - 1) for n, level in zip(looks, Looks(looks[-1]).levels(looks), strict=True)]
        rates = (t > plain).any(axis=0).mean(), (t > np.array(spent)[:, np.newaxis]).any(axis=0).mean()
        name = ", ".join(map(str, looks)) if len(looks) < 9 else f"{looks[0]}, {looks[1]} ... {looks[-1]}"
        print(f"{name:<28}{rates[0]:>14.1%}{rates[1]:>8.1%}")


def run() -> None:
    for part in (points, greatest, resamples, looking):
        part()
        print()


if __name__ == "__main__":
    run()
