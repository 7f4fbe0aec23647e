"""Softwood: tree models with predictive uncertainty.

Every estimator follows the interface of scikit-learn and adds `predict_dist`, which returns the predictive distribution
of each row and splits its uncertainty into two parts:

- data (aleatoric) uncertainty: noise in the target, which more training rows do not reduce;
- knowledge (epistemic) uncertainty: too few training rows like this one, which more training rows reduce.
"""

from importlib.metadata import version as _version

from softwood import bandit, causal, design, significance
from softwood._base import load, ood
from softwood._callbacks import Checkpoint
from softwood._distribution import ClassificationDistribution, Contrast, RegressionDistribution
from softwood._estimators import *  # noqa: F403
from softwood._estimators import __all__ as _estimators
from softwood._evaluate import evaluate, score
from softwood._native import Event

__all__ = [  # noqa: PLE0604
    "Checkpoint",
    "ClassificationDistribution",
    "Contrast",
    "Event",
    "RegressionDistribution",
    "bandit",
    "causal",
    "design",
    "evaluate",
    "load",
    "ood",
    "score",
    "significance",
    *_estimators,
]
__version__ = _version("softwood")
