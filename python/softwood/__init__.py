"""Softwood: tree models that know what they do not know.

Every estimator follows scikit-learn and adds `predict_dist`, which gives each row a whole distribution and splits its
uncertainty into *data* (noise) and *knowledge* (what the model has not seen).
"""

from importlib.metadata import version as _version

from softwood._base import load, ood
from softwood._distribution import ClassificationDistribution, RegressionDistribution
from softwood._estimators import (
    ForestClassifier,
    ForestRegressor,
    SGBClassifier,
    SGBRegressor,
    SGLBClassifier,
    SGLBRegressor,
    TreeClassifier,
    TreeRegressor,
    VSGBMClassifier,
    VSGBMRegressor,
    VSTClassifier,
    VSTRegressor,
)

__all__ = [
    "ClassificationDistribution",
    "ForestClassifier",
    "ForestRegressor",
    "RegressionDistribution",
    "SGBClassifier",
    "SGBRegressor",
    "SGLBClassifier",
    "SGLBRegressor",
    "TreeClassifier",
    "TreeRegressor",
    "VSGBMClassifier",
    "VSGBMRegressor",
    "VSTClassifier",
    "VSTRegressor",
    "load",
    "ood",
]
__version__ = _version("softwood")
