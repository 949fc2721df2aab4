"""Which units of a batch differ from their batch. Pure.

References
----------
B. Iglewicz and D. C. Hoaglin, How to Detect and Handle Outliers, ASQC, 1993: the median and the median absolute
deviation (MAD) instead of mean and standard deviation, and 3.5 as the limit of the modified z-score.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

LEAST_UNITS = 4  # below this there is no batch to compare with
Z_LIMIT = 3.5  # modified z-score [1]
Z_SCALE = 0.6745  # makes the MAD comparable with a standard deviation [1]
LEAST_SHARE = 0.02  # nearer than this to the median is not worth a look, however even the batch [1]


@dataclass(frozen=True, slots=True)
class Outlier:
    """One unit's figure far from the batch. `share` is the signed distance from the median. [1]"""

    value: float
    median: float
    share: float


def outliers(values: Mapping[K, float]) -> dict[K, Outlier]:
    """Units whose figure is far from the batch, by key. Empty for fewer than four units.

    Far is a modified z-score above 3.5 and more than 2 % from the median; where more than half of the batch is equal
    (MAD 0) the 2 % alone decide.
    """
    if len(values) < LEAST_UNITS:
        return {}
    middle = median(values.values())
    if middle == 0:
        return {}
    mad = median(abs(value - middle) for value in values.values())
    found = {}
    for key, value in values.items():
        share = (value - middle) / abs(middle)
        if abs(share) <= LEAST_SHARE:
            continue
        if mad == 0 or Z_SCALE * abs(value - middle) / mad > Z_LIMIT:
            found[key] = Outlier(value, middle, share)
    return found
