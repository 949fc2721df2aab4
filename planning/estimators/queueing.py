"""Waiting in front of a fleet of slots: Erlang C with the Allen-Cunneen correction.

A slot holds one request from admission to its last token. Slots of all replicas form one queue, which a balancer
that sends each request to the emptiest replica comes near to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.errors import require_at_least


@lru_cache(maxsize=256)  # each percentile of one queue asks for the same
def erlang_c(slots: int, load: float) -> float:
    """Probability that an arrival has to wait, M/M/c. [1]

    Parameters
    ----------
    slots : int
        Servers c, at least 1. [1]
    load : float
        Offered load a = arrivals x service time, in slots. At a >= c every arrival waits. [1]

    References
    ----------
    A. K. Erlang, 1917; D. Gross et al., "Fundamentals of Queueing Theory," 4th ed., section 2.3.
    """
    require_at_least("slots", slots, 1)
    require_at_least("load", load, 0.0)
    if load == 0.0:
        return 0.0
    if load >= slots:
        return 1.0
    if slots > load + 40.0 * math.sqrt(load) + 40.0:
        return 0.0  # forty deviations away: below what a float holds
    # log of a^k/k!; far below the peak the terms vanish, so that the sum starts there
    first = max(0, math.floor(load - 40.0 * math.sqrt(load) - 40.0))
    k = np.arange(first + 1, slots + 1, dtype=np.float64)
    start = first * math.log(load) - math.lgamma(first + 1)
    terms = start + np.concatenate(([0.0], np.cumsum(math.log(load) - np.log(k))))
    peak = float(terms.max())
    weights = np.exp(terms - peak)
    blocked = float(weights[-1] / weights.sum())  # Erlang B
    share = load / slots
    return blocked / (1.0 - share + share * blocked)


@dataclass(frozen=True, slots=True)
class Queue:
    """G/G/c queue by Allen and Cunneen. Times in s."""

    slots: int
    service: float  # mean time in a slot [s]
    rate: float  # arrivals [1/s]
    arrival_variation: float = 1.0
    service_variation: float = 1.0

    @property
    def load(self) -> float:
        """Share of the slots in use, rho; 1 and above: the queue grows without end. [1]"""
        return self.rate * self.service / self.slots

    @property
    def waiting_probability(self) -> float:
        return erlang_c(self.slots, self.rate * self.service)

    def wait(self, percentile: float) -> float:
        """Wait that a share `percentile` of the requests stays below; inf at or above full load. [s]

        S ln(C / (1 - p)) / (c (1 - rho)) x (ca^2 + cs^2) / 2, and 0 where C <= 1 - p.

        References
        ----------
        A. O. Allen, "Probability, Statistics, and Queueing Theory," 2nd ed., 1990, section 5.3.
        """
        if self.load >= 1.0:
            return math.inf
        waiting = self.waiting_probability
        if waiting <= 1.0 - percentile:
            return 0.0
        variation = (self.arrival_variation**2 + self.service_variation**2) / 2.0
        mean_of_waiting = self.service / (self.slots * (1.0 - self.load)) * variation
        return mean_of_waiting * math.log(waiting / (1.0 - percentile))


def highest_load(slots: int, *, wait: float, percentile: float, variation: float = 1.0) -> float:
    """Highest share of the slots in use at which the wait's percentile stays within `wait` service times. [1]"""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        queue = Queue(slots, 1.0, middle * slots, math.sqrt(variation), math.sqrt(variation))
        low, high = (middle, high) if queue.wait(percentile) <= wait else (low, middle)
    return low
