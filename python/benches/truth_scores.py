"""Forecasts of a model for one zone, and their scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benches.truth_problems import Zone

Array = NDArray[np.float64]
HALF_90 = 1.6448536269514722
"""Half the width of the central 90% interval of a Normal distribution, in standard deviations."""


class Forecast(Protocol):
    """The predictive distributions of some rows; `RegressionDistribution` is one."""

    @property
    def mean(self) -> Array:
        """Mean of each row."""

    @property
    def knowledge(self) -> Array:
        """Variance of the conditional mean."""

    def interval(self, level: float) -> Array:
        """Central interval of each row, (n_rows, 2)."""

    def logpdf(self, y: Array) -> Array:
        """Log density of each row."""

    def crps(self, y: Array) -> Array:
        """Continuous ranked probability score of each row."""


@dataclass(frozen=True)
class NormalMixture:
    """A mixture of Normal distributions with equal weights, (n_rows, n_members)."""

    means: Array
    stds: Array
    own_knowledge: Array | None = None
    """Variance of the conditional mean, where it is not the variance of the members' means."""

    @property
    def mean(self) -> Array:
        """Mean of each row."""
        return np.asarray(self.means.mean(axis=1))

    @property
    def knowledge(self) -> Array:
        """Variance of the conditional mean."""
        return np.asarray(self.means.var(axis=1)) if self.own_knowledge is None else self.own_knowledge

    def cdf(self, y: Array) -> Array:
        """Return the distribution function of each row."""
        from scipy.special import ndtr

        return np.asarray(ndtr((y[:, None] - self.means) / self.stds).mean(axis=1))

    def interval(self, level: float) -> Array:
        """Return central intervals, by bisection."""
        ends = []
        for target in ((1 - level) / 2, (1 + level) / 2):
            low, high = (self.means - 10 * self.stds).min(axis=1), (self.means + 10 * self.stds).max(axis=1)
            for _ in range(60):
                middle = (low + high) / 2
                is_below = self.cdf(middle) < target
                low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
            ends.append((low + high) / 2)
        return np.stack(ends, axis=1)

    def logpdf(self, y: Array) -> Array:
        """Return the log density of each row."""
        scores = -0.5 * ((y[:, None] - self.means) / self.stds) ** 2 - np.log(self.stds)
        top = scores.max(axis=1)
        return np.asarray(top + np.log(np.exp(scores - top[:, None]).mean(axis=1)) - 0.5 * math.log(2 * math.pi))

    def crps(self, y: Array) -> Array:
        """Return `E|Y - y| - E|Y - Y'| / 2` of each row."""
        errors = expected_abs(y[:, None] - self.means, self.stds).mean(axis=1)
        spread = np.zeros(len(y))
        for member in range(self.means.shape[1]):
            std = np.hypot(self.stds, self.stds[:, [member]])
            spread += expected_abs(self.means - self.means[:, [member]], std).mean(axis=1)
        return np.asarray(errors - spread / (2 * self.means.shape[1]))


def expected_abs(mean: Array, std: Array) -> Array:
    """Return `E|Z|` of `Z ~ N(mean, std^2)`."""
    from scipy.special import ndtr

    ratio = mean / std
    return np.asarray(mean * (2 * ndtr(ratio) - 1) + std * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2))


def zone_scores(forecast: Forecast, zone: Zone, scale: float) -> dict[str, float]:
    """Score one zone; log scores, CRPS and standard deviations are in units of `scale`."""
    interval, log_scores = forecast.interval(0.9), forecast.logpdf(zone.y) + math.log(scale)
    knowledge_sd = np.sqrt(np.maximum(forecast.knowledge, 0.0))
    found = {
        "coverage_90": float(np.mean((interval[:, 0] <= zone.y) & (zone.y <= interval[:, 1]))),
        "log_score": float(log_scores.mean()),
        "log_score_median": float(np.median(log_scores)),
        "crps": float(forecast.crps(zone.y).mean() / scale),
        "rmse": float(np.sqrt(np.mean((forecast.mean - zone.y) ** 2)) / scale),
        "width": float(np.mean(interval[:, 1] - interval[:, 0]) / scale),
        "knowledge_sd": float(knowledge_sd.mean() / scale),
        "n_rows": len(zone.y),
    }
    if zone.mean is not None:
        found["band"] = float(np.mean(np.abs(zone.mean - forecast.mean) <= HALF_90 * knowledge_sd))
    return found
