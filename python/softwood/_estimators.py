"""The estimators. Written by `python -m softwood._generate` from the parameter tables: change those, not this."""

from __future__ import annotations

from typing import Any, Literal

from softwood._base import Classifier, Regressor


class VSTRegressor(Regressor):
    """Variational soft tree for regression.

    Variational soft tree: one soft tree with a Gaussian posterior over all its weights.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    depth : int or None, default=None
        Levels of gates; None: chosen on held-out rows. From 0 to 8.
    leaf : {"constant", "linear"} or None, default=None
        What stands in a leaf; None: linear where `depth` or `leaf_mixing` is given, else chosen on held-out rows.
    leaf_mixing : {"mixture", "blend", "hybrid"} or None, default=None
        How leaves become one distribution; None: chosen on held-out rows.
    mixing_levels : int or None, default=None
        Levels of a hybrid tree that choose a component; None: half of `depth`, rounded up. From 0 to 8.
    beta : float, default=1.0
        Inverse temperature of the gates. From 0.01 to 100.
    rank : int, default=5
        Rank of the posterior covariance besides its diagonal (at most the number of weights). From 0 to 100000.
    prior : {"ard", "kind", "fixed"}, default="ard"
        Where the prior variances come from.
    prior_scale : float, default=0.5
        Prior standard deviation of every weight: fixed, or where learning starts. From 0.001 to 100.
    kl_weight : float, default=1.0
        Weight of the KL term of the ELBO; 1 is Bayes. From 0 to 10.
    learning_rate : float or None, default=None
        Peak step size of Adam, decayed to zero by a cosine; None: 0.01, for classes 0.02. From 1e-06 to 1.
    batch_size : int or None, default=None
        Rows per step; None: by the number of rows. From 1 to 1e+06.
    n_epochs : int or None, default=None
        Passes over the training rows; None: by the number of rows. From 1 to 1e+06.
    n_draws : int or None, default=None
        Parameter draws per step, antithetic pairs from 2 on; None: by the number of rows. From 1 to 64.
    n_fits : int, default=4
        Fits whose posteriors are averaged: of the shapes that come near the best, in turn. From 1 to 100.
    n_members : int, default=100
        Posterior draws kept for prediction. From 1 to 10000.
    early_stopping : bool, default=True
        Whether to keep the epoch that was best on held-out rows.
    validation_fraction : float, default=0.1
        Part of the training rows held out where none are given. From 0.01 to 0.5.
    scaling : {"standard", "quantile"} or None, default=None
        Scaling of numeric inputs; None: chosen on held-out rows.
    rotation : {"none", "pca", "both"} or None, default=None
        Rotation of numeric inputs; None: chosen on held-out rows.
    squares : bool or None, default=None
        Whether the squares of numeric inputs are inputs too; None: chosen on held-out rows.
    max_categories : int, default=32
        Categories per column that get an input of their own; rarer ones share one. From 1 to 10000.
    min_scale : float or None, default=None
        Least standard deviation of a leaf, in units of the target's; None: 0.001, or half the target's resolution.
        From 0 to 10.
    noise_scale : float or None, default=None
        Known noise standard deviation in the target's units; None: learned. From 1e-12 to 1e+12.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import VSTRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = VSTRegressor(depth=1, n_epochs=5, random_state=0).fit(X, y)
    >>> model.predict_dist(X).interval(0.9).shape
    (40, 2)
    """

    _family = "vst"

    def __init__(
        self,
        *,
        depth: int | None = None,
        leaf: Literal["constant", "linear"] | None = None,
        leaf_mixing: Literal["mixture", "blend", "hybrid"] | None = None,
        mixing_levels: int | None = None,
        beta: float = 1.0,
        rank: int = 5,
        prior: Literal["ard", "kind", "fixed"] = "ard",
        prior_scale: float = 0.5,
        kl_weight: float = 1.0,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        n_draws: int | None = None,
        n_fits: int = 4,
        n_members: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        scaling: Literal["standard", "quantile"] | None = None,
        rotation: Literal["none", "pca", "both"] | None = None,
        squares: bool | None = None,
        max_categories: int = 32,
        min_scale: float | None = None,
        noise_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.leaf = leaf
        self.leaf_mixing = leaf_mixing
        self.mixing_levels = mixing_levels
        self.beta = beta
        self.rank = rank
        self.prior = prior
        self.prior_scale = prior_scale
        self.kl_weight = kl_weight
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.n_draws = n_draws
        self.n_fits = n_fits
        self.n_members = n_members
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.rotation = rotation
        self.squares = squares
        self.max_categories = max_categories
        self.min_scale = min_scale
        self.noise_scale = noise_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class VSTClassifier(Classifier):
    """Variational soft tree for classification.

    Variational soft tree: one soft tree with a Gaussian posterior over all its weights.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    depth : int or None, default=None
        Levels of gates; None: chosen on held-out rows. From 0 to 8.
    leaf : {"constant", "linear"} or None, default=None
        What stands in a leaf; None: linear where `depth` or `leaf_mixing` is given, else chosen on held-out rows.
    leaf_mixing : {"mixture", "blend", "hybrid"} or None, default=None
        How leaves become one distribution; None: chosen on held-out rows.
    mixing_levels : int or None, default=None
        Levels of a hybrid tree that choose a component; None: half of `depth`, rounded up. From 0 to 8.
    beta : float, default=1.0
        Inverse temperature of the gates. From 0.01 to 100.
    rank : int, default=5
        Rank of the posterior covariance besides its diagonal (at most the number of weights). From 0 to 100000.
    prior : {"ard", "kind", "fixed"}, default="ard"
        Where the prior variances come from.
    prior_scale : float, default=0.5
        Prior standard deviation of every weight: fixed, or where learning starts. From 0.001 to 100.
    kl_weight : float, default=1.0
        Weight of the KL term of the ELBO; 1 is Bayes. From 0 to 10.
    learning_rate : float or None, default=None
        Peak step size of Adam, decayed to zero by a cosine; None: 0.01, for classes 0.02. From 1e-06 to 1.
    batch_size : int or None, default=None
        Rows per step; None: by the number of rows. From 1 to 1e+06.
    n_epochs : int or None, default=None
        Passes over the training rows; None: by the number of rows. From 1 to 1e+06.
    n_draws : int or None, default=None
        Parameter draws per step, antithetic pairs from 2 on; None: by the number of rows. From 1 to 64.
    n_fits : int, default=4
        Fits whose posteriors are averaged: of the shapes that come near the best, in turn. From 1 to 100.
    n_members : int, default=100
        Posterior draws kept for prediction. From 1 to 10000.
    early_stopping : bool, default=True
        Whether to keep the epoch that was best on held-out rows.
    validation_fraction : float, default=0.1
        Part of the training rows held out where none are given. From 0.01 to 0.5.
    scaling : {"standard", "quantile"} or None, default=None
        Scaling of numeric inputs; None: chosen on held-out rows.
    rotation : {"none", "pca", "both"} or None, default=None
        Rotation of numeric inputs; None: chosen on held-out rows.
    squares : bool or None, default=None
        Whether the squares of numeric inputs are inputs too; None: chosen on held-out rows.
    max_categories : int, default=32
        Categories per column that get an input of their own; rarer ones share one. From 1 to 10000.
    min_scale : float or None, default=None
        Least standard deviation of a leaf, in units of the target's; None: 0.001, or half the target's resolution.
        From 0 to 10.
    noise_scale : float or None, default=None
        Known noise standard deviation in the target's units; None: learned. From 1e-12 to 1e+12.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the probabilities.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import VSTClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = VSTClassifier(depth=1, n_epochs=5, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _family = "vst"

    def __init__(
        self,
        *,
        depth: int | None = None,
        leaf: Literal["constant", "linear"] | None = None,
        leaf_mixing: Literal["mixture", "blend", "hybrid"] | None = None,
        mixing_levels: int | None = None,
        beta: float = 1.0,
        rank: int = 5,
        prior: Literal["ard", "kind", "fixed"] = "ard",
        prior_scale: float = 0.5,
        kl_weight: float = 1.0,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        n_draws: int | None = None,
        n_fits: int = 4,
        n_members: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        scaling: Literal["standard", "quantile"] | None = None,
        rotation: Literal["none", "pca", "both"] | None = None,
        squares: bool | None = None,
        max_categories: int = 32,
        min_scale: float | None = None,
        noise_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.depth = depth
        self.leaf = leaf
        self.leaf_mixing = leaf_mixing
        self.mixing_levels = mixing_levels
        self.beta = beta
        self.rank = rank
        self.prior = prior
        self.prior_scale = prior_scale
        self.kl_weight = kl_weight
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.n_draws = n_draws
        self.n_fits = n_fits
        self.n_members = n_members
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.rotation = rotation
        self.squares = squares
        self.max_categories = max_categories
        self.min_scale = min_scale
        self.noise_scale = noise_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class VSGBMRegressor(Regressor):
    """Boosted variational soft trees for regression.

    Boosted variational soft trees: a sum of soft trees with a posterior over all weights.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_trees : int or None, default=None
        Trees; None: as many as held-out rows ask for, at most 10 (3 where none are held out). From 1 to 1000.
    depth : int or None, default=None
        Levels of gates; None: of the first tree chosen on held-out rows, of the others 3. From 0 to 8.
    leaf : {"constant", "linear"} or None, default=None
        What stands in a leaf; None: linear where `depth` or `leaf_mixing` is given, else chosen on held-out rows.
    leaf_mixing : {"mixture", "blend", "hybrid"} or None, default=None
        How the leaves of the first tree become one distribution; None: chosen on held-out rows.
    mixing_levels : int or None, default=None
        Levels of a hybrid first tree that choose a component; None: half of `depth`, rounded up. From 0 to 8.
    noise : {"varying", "constant"}, default="varying"
        What is said of the noise of a number.
    calm_start : bool, default=True
        Whether a varying noise begins as one for all rows and is set free when the mean is there (where the first
        tree is a blend).
    recalibrate : bool, default=True
        Whether a varying noise is made as wide as held-out rows show it, less what averaging the fits takes away.
    noise_update : {"exact", "printed"}, default="exact"
        How squared residuals count in the posterior of a constant noise.
    noise_shape : float, default=3.0
        Shape of the inverse-Gamma prior of a constant noise variance. From 0.01 to 1e+06.
    noise_rate : float, default=0.1
        Scale of that prior, in units of the target's variance. From 1e-09 to 1e+06.
    shrinkage : float, default=0.5
        Factor of every tree that is added (with a constant noise, of the first tree too). From 0.01 to 1.
    residuals : {"mean", "draw", "refreshed"}, default="mean"
        What of the earlier trees a tree is fitted to.
    joint : bool, default=True
        Whether the posteriors of all trees are improved together, where held-out rows can judge it.
    beta : float, default=1.0
        Inverse temperature of the gates. From 0.01 to 100.
    rank : int, default=5
        Rank of the posterior covariance besides its diagonal (at most the number of weights). From 0 to 100000.
    prior : {"ard", "kind", "fixed"}, default="ard"
        Where the prior variances come from.
    prior_scale : float, default=0.5
        Prior standard deviation of every weight: fixed, or where learning starts. From 0.001 to 100.
    kl_weight : float, default=1.0
        Weight of the KL term of the ELBO; 1 is Bayes. From 0 to 10.
    learning_rate : float or None, default=None
        Peak step size of Adam, decayed to zero by a cosine; None: 0.01, for classes 0.02. From 1e-06 to 1.
    batch_size : int or None, default=None
        Rows per step; None: by the number of rows. From 1 to 1e+06.
    n_epochs : int or None, default=None
        Passes over the training rows in the last run of all trees; None: by the number of rows. The first tree has
        half of them, each tree that is added 0.15 of them by itself and (with `joint`) a tenth with the others.
        From 1 to 1e+06.
    n_draws : int or None, default=None
        Parameter draws per step, antithetic pairs from 2 on; None: by the number of rows. From 1 to 64.
    n_fits : int, default=4
        Fits whose posteriors are averaged: of the shapes that come near the best, in turn. From 1 to 100.
    n_members : int, default=100
        Posterior draws kept for prediction. From 1 to 10000.
    early_stopping : bool, default=True
        Whether to keep the epoch of a run that was best on held-out rows.
    validation_fraction : float, default=0.1
        Part of the training rows held out where none are given. From 0.01 to 0.5.
    scaling : {"standard", "quantile"} or None, default=None
        Scaling of numeric inputs; None: chosen on held-out rows.
    rotation : {"none", "pca", "both"} or None, default=None
        Rotation of numeric inputs; None: chosen on held-out rows.
    squares : bool or None, default=None
        Whether the squares of numeric inputs are inputs too; None: chosen on held-out rows.
    max_categories : int, default=32
        Categories per column that get an input of their own; rarer ones share one. From 1 to 10000.
    min_scale : float or None, default=None
        Least standard deviation of a leaf, in units of the target's; None: 0.001, or half the target's resolution.
        From 0 to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import VSGBMRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = VSGBMRegressor(n_trees=2, depth=1, n_epochs=5, random_state=0).fit(X, y)
    >>> model.predict_dist(X).interval(0.9).shape
    (40, 2)
    """

    _family = "vsgbm"

    def __init__(
        self,
        *,
        n_trees: int | None = None,
        depth: int | None = None,
        leaf: Literal["constant", "linear"] | None = None,
        leaf_mixing: Literal["mixture", "blend", "hybrid"] | None = None,
        mixing_levels: int | None = None,
        noise: Literal["varying", "constant"] = "varying",
        calm_start: bool = True,
        recalibrate: bool = True,
        noise_update: Literal["exact", "printed"] = "exact",
        noise_shape: float = 3.0,
        noise_rate: float = 0.1,
        shrinkage: float = 0.5,
        residuals: Literal["mean", "draw", "refreshed"] = "mean",
        joint: bool = True,
        beta: float = 1.0,
        rank: int = 5,
        prior: Literal["ard", "kind", "fixed"] = "ard",
        prior_scale: float = 0.5,
        kl_weight: float = 1.0,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        n_draws: int | None = None,
        n_fits: int = 4,
        n_members: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        scaling: Literal["standard", "quantile"] | None = None,
        rotation: Literal["none", "pca", "both"] | None = None,
        squares: bool | None = None,
        max_categories: int = 32,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.depth = depth
        self.leaf = leaf
        self.leaf_mixing = leaf_mixing
        self.mixing_levels = mixing_levels
        self.noise = noise
        self.calm_start = calm_start
        self.recalibrate = recalibrate
        self.noise_update = noise_update
        self.noise_shape = noise_shape
        self.noise_rate = noise_rate
        self.shrinkage = shrinkage
        self.residuals = residuals
        self.joint = joint
        self.beta = beta
        self.rank = rank
        self.prior = prior
        self.prior_scale = prior_scale
        self.kl_weight = kl_weight
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.n_draws = n_draws
        self.n_fits = n_fits
        self.n_members = n_members
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.rotation = rotation
        self.squares = squares
        self.max_categories = max_categories
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class VSGBMClassifier(Classifier):
    """Boosted variational soft trees for classification.

    Boosted variational soft trees: a sum of soft trees with a posterior over all weights.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_trees : int or None, default=None
        Trees; None: as many as held-out rows ask for, at most 10 (3 where none are held out). From 1 to 1000.
    depth : int or None, default=None
        Levels of gates; None: of the first tree chosen on held-out rows, of the others 3. From 0 to 8.
    leaf : {"constant", "linear"} or None, default=None
        What stands in a leaf; None: linear where `depth` or `leaf_mixing` is given, else chosen on held-out rows.
    leaf_mixing : {"mixture", "blend", "hybrid"} or None, default=None
        How the leaves of the first tree become one distribution; None: chosen on held-out rows.
    mixing_levels : int or None, default=None
        Levels of a hybrid first tree that choose a component; None: half of `depth`, rounded up. From 0 to 8.
    noise : {"varying", "constant"}, default="varying"
        What is said of the noise of a number.
    calm_start : bool, default=True
        Whether a varying noise begins as one for all rows and is set free when the mean is there (where the first
        tree is a blend).
    recalibrate : bool, default=True
        Whether a varying noise is made as wide as held-out rows show it, less what averaging the fits takes away.
    noise_update : {"exact", "printed"}, default="exact"
        How squared residuals count in the posterior of a constant noise.
    noise_shape : float, default=3.0
        Shape of the inverse-Gamma prior of a constant noise variance. From 0.01 to 1e+06.
    noise_rate : float, default=0.1
        Scale of that prior, in units of the target's variance. From 1e-09 to 1e+06.
    shrinkage : float, default=0.5
        Factor of every tree that is added (with a constant noise, of the first tree too). From 0.01 to 1.
    residuals : {"mean", "draw", "refreshed"}, default="mean"
        What of the earlier trees a tree is fitted to.
    joint : bool, default=True
        Whether the posteriors of all trees are improved together, where held-out rows can judge it.
    beta : float, default=1.0
        Inverse temperature of the gates. From 0.01 to 100.
    rank : int, default=5
        Rank of the posterior covariance besides its diagonal (at most the number of weights). From 0 to 100000.
    prior : {"ard", "kind", "fixed"}, default="ard"
        Where the prior variances come from.
    prior_scale : float, default=0.5
        Prior standard deviation of every weight: fixed, or where learning starts. From 0.001 to 100.
    kl_weight : float, default=1.0
        Weight of the KL term of the ELBO; 1 is Bayes. From 0 to 10.
    learning_rate : float or None, default=None
        Peak step size of Adam, decayed to zero by a cosine; None: 0.01, for classes 0.02. From 1e-06 to 1.
    batch_size : int or None, default=None
        Rows per step; None: by the number of rows. From 1 to 1e+06.
    n_epochs : int or None, default=None
        Passes over the training rows in the last run of all trees; None: by the number of rows. The first tree has
        half of them, each tree that is added 0.15 of them by itself and (with `joint`) a tenth with the others.
        From 1 to 1e+06.
    n_draws : int or None, default=None
        Parameter draws per step, antithetic pairs from 2 on; None: by the number of rows. From 1 to 64.
    n_fits : int, default=4
        Fits whose posteriors are averaged: of the shapes that come near the best, in turn. From 1 to 100.
    n_members : int, default=100
        Posterior draws kept for prediction. From 1 to 10000.
    early_stopping : bool, default=True
        Whether to keep the epoch of a run that was best on held-out rows.
    validation_fraction : float, default=0.1
        Part of the training rows held out where none are given. From 0.01 to 0.5.
    scaling : {"standard", "quantile"} or None, default=None
        Scaling of numeric inputs; None: chosen on held-out rows.
    rotation : {"none", "pca", "both"} or None, default=None
        Rotation of numeric inputs; None: chosen on held-out rows.
    squares : bool or None, default=None
        Whether the squares of numeric inputs are inputs too; None: chosen on held-out rows.
    max_categories : int, default=32
        Categories per column that get an input of their own; rarer ones share one. From 1 to 10000.
    min_scale : float or None, default=None
        Least standard deviation of a leaf, in units of the target's; None: 0.001, or half the target's resolution.
        From 0 to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the probabilities.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import VSGBMClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = VSGBMClassifier(n_trees=2, depth=1, n_epochs=5, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _family = "vsgbm"

    def __init__(
        self,
        *,
        n_trees: int | None = None,
        depth: int | None = None,
        leaf: Literal["constant", "linear"] | None = None,
        leaf_mixing: Literal["mixture", "blend", "hybrid"] | None = None,
        mixing_levels: int | None = None,
        noise: Literal["varying", "constant"] = "varying",
        calm_start: bool = True,
        recalibrate: bool = True,
        noise_update: Literal["exact", "printed"] = "exact",
        noise_shape: float = 3.0,
        noise_rate: float = 0.1,
        shrinkage: float = 0.5,
        residuals: Literal["mean", "draw", "refreshed"] = "mean",
        joint: bool = True,
        beta: float = 1.0,
        rank: int = 5,
        prior: Literal["ard", "kind", "fixed"] = "ard",
        prior_scale: float = 0.5,
        kl_weight: float = 1.0,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        n_epochs: int | None = None,
        n_draws: int | None = None,
        n_fits: int = 4,
        n_members: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        scaling: Literal["standard", "quantile"] | None = None,
        rotation: Literal["none", "pca", "both"] | None = None,
        squares: bool | None = None,
        max_categories: int = 32,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.depth = depth
        self.leaf = leaf
        self.leaf_mixing = leaf_mixing
        self.mixing_levels = mixing_levels
        self.noise = noise
        self.calm_start = calm_start
        self.recalibrate = recalibrate
        self.noise_update = noise_update
        self.noise_shape = noise_shape
        self.noise_rate = noise_rate
        self.shrinkage = shrinkage
        self.residuals = residuals
        self.joint = joint
        self.beta = beta
        self.rank = rank
        self.prior = prior
        self.prior_scale = prior_scale
        self.kl_weight = kl_weight
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.n_draws = n_draws
        self.n_fits = n_fits
        self.n_members = n_members
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scaling = scaling
        self.rotation = rotation
        self.squares = squares
        self.max_categories = max_categories
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class SGBRegressor(Regressor):
    """Stochastic gradient boosting for regression.

    Stochastic gradient boosting: ensembles of boosted hard trees.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_estimators : int, default=1000
        Trees of each member. From 1 to 100000.
    learning_rate : float or None, default=None
        Step size; None: chosen on held-out rows. From 1e-05 to 1.
    max_depth : int or None, default=None
        Levels of a tree; None: chosen on held-out rows. From 0 to 16.
    growth : {"symmetric", "depthwise", "leafwise"}, default="symmetric"
        How a tree grows.
    max_leaves : int, default=31
        Most leaves of a tree that grows leaf by leaf. From 2 to 65536.
    l2 : float, default=3.0
        Rows of typical curvature added to every leaf. From 0 to 1e+06.
    min_child_weight : float, default=0.001
        Least weight of a leaf (classification: least curvature). From 0 to 1e+12.
    subsample : float, default=0.5
        Part of the rows that the tests of a tree are chosen on. From 0.01 to 1.
    colsample : float, default=1.0
        Part of the columns that the tests of a tree are chosen from. From 0.01 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    interactions : bool or None, default=None
        Whether categories are also looked at together; None: where held-out rows gain by it.
    head : {"normal", "squared"}, default="normal"
        What a regression model predicts besides the mean.
    monotone : dict of column names and directions (1 or -1) or None, default=None
        Columns in which the mean (or the logit of the second of two classes) may only rise or only fall.
    n_members : int, default=10
        Members, each fitted by itself. From 1 to 1000.
    early_stopping_rounds : int or None, default=None
        Trees without a better held-out score after which to stop; None: never. From 1 to 100000.
    validation_fraction : float, default=0.2
        Part of the training rows held out where something is chosen on them and none are given. From 0.01 to 0.5.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGBRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = SGBRegressor(n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.predict_dist(X).interval(0.9).shape
    (40, 2)
    """

    _family = "sgb"

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        growth: Literal["symmetric", "depthwise", "leafwise"] = "symmetric",
        max_leaves: int = 31,
        l2: float = 3.0,
        min_child_weight: float = 0.001,
        subsample: float = 0.5,
        colsample: float = 1.0,
        max_bins: int = 255,
        interactions: bool | None = None,
        head: Literal["normal", "squared"] = "normal",
        monotone: dict[str, int] | None = None,
        n_members: int = 10,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.2,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.growth = growth
        self.max_leaves = max_leaves
        self.l2 = l2
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample = colsample
        self.max_bins = max_bins
        self.interactions = interactions
        self.head = head
        self.monotone = monotone
        self.n_members = n_members
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class SGBClassifier(Classifier):
    """Stochastic gradient boosting for classification.

    Stochastic gradient boosting: ensembles of boosted hard trees.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_estimators : int, default=1000
        Trees of each member. From 1 to 100000.
    learning_rate : float or None, default=None
        Step size; None: chosen on held-out rows. From 1e-05 to 1.
    max_depth : int or None, default=None
        Levels of a tree; None: chosen on held-out rows. From 0 to 16.
    growth : {"symmetric", "depthwise", "leafwise"}, default="symmetric"
        How a tree grows.
    max_leaves : int, default=31
        Most leaves of a tree that grows leaf by leaf. From 2 to 65536.
    l2 : float, default=3.0
        Rows of typical curvature added to every leaf. From 0 to 1e+06.
    min_child_weight : float, default=0.001
        Least weight of a leaf (classification: least curvature). From 0 to 1e+12.
    subsample : float, default=0.5
        Part of the rows that the tests of a tree are chosen on. From 0.01 to 1.
    colsample : float, default=1.0
        Part of the columns that the tests of a tree are chosen from. From 0.01 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    interactions : bool or None, default=None
        Whether categories are also looked at together; None: where held-out rows gain by it.
    head : {"normal", "squared"}, default="normal"
        What a regression model predicts besides the mean.
    monotone : dict of column names and directions (1 or -1) or None, default=None
        Columns in which the mean (or the logit of the second of two classes) may only rise or only fall.
    class_weight : dict of classes and weights, "balanced" or None, default=None
        Weights of the classes, times those of the rows; balanced: each class counts the same altogether. From 0 to
        1e+06.
    n_members : int, default=10
        Members, each fitted by itself. From 1 to 1000.
    early_stopping_rounds : int or None, default=None
        Trees without a better held-out score after which to stop; None: never. From 1 to 100000.
    validation_fraction : float, default=0.2
        Part of the training rows held out where something is chosen on them and none are given. From 0.01 to 0.5.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the probabilities.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGBClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = SGBClassifier(n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _family = "sgb"

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        growth: Literal["symmetric", "depthwise", "leafwise"] = "symmetric",
        max_leaves: int = 31,
        l2: float = 3.0,
        min_child_weight: float = 0.001,
        subsample: float = 0.5,
        colsample: float = 1.0,
        max_bins: int = 255,
        interactions: bool | None = None,
        head: Literal["normal", "squared"] = "normal",
        monotone: dict[str, int] | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        n_members: int = 10,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.2,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.growth = growth
        self.max_leaves = max_leaves
        self.l2 = l2
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample = colsample
        self.max_bins = max_bins
        self.interactions = interactions
        self.head = head
        self.monotone = monotone
        self.class_weight = class_weight
        self.n_members = n_members
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class SGLBRegressor(Regressor):
    """Langevin boosting for regression.

    Langevin boosting: boosted hard trees whose members are posterior samples.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_estimators : int, default=1000
        Trees of each chain. From 1 to 100000.
    learning_rate : float or None, default=None
        Step size; None: chosen on held-out rows. From 1e-05 to 1.
    max_depth : int or None, default=None
        Levels of a tree; None: chosen on held-out rows. From 0 to 16.
    growth : {"symmetric", "depthwise", "leafwise"}, default="symmetric"
        How a tree grows.
    max_leaves : int, default=31
        Most leaves of a tree that grows leaf by leaf. From 2 to 65536.
    l2 : float, default=3.0
        Rows of typical curvature added to every leaf. From 0 to 1e+06.
    min_child_weight : float, default=0.001
        Least weight of a leaf (classification: least curvature). From 0 to 1e+12.
    subsample : float, default=1.0
        Part of the rows that the tests of a tree are chosen on. From 0.01 to 1.
    colsample : float, default=1.0
        Part of the columns that the tests of a tree are chosen from. From 0.01 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    interactions : bool or None, default=None
        Whether categories are also looked at together; None: where held-out rows gain by it.
    head : {"normal", "squared"}, default="normal"
        What a regression model predicts besides the mean.
    monotone : dict of column names and directions (1 or -1) or None, default=None
        Columns in which the mean (or the logit of the second of two classes) may only rise or only fall.
    sampling : {"posterior", "malinin", "split-noise"}, default="posterior"
        Where the noise goes.
    shrink_rate : float or None, default=None
        Shrinkage of the sum before each tree, times the step size; None: 1/(2 N), for classes at least 0.01. From 0
        to 1.
    n_members : int, default=10
        Members. From 1 to 1000.
    virtual : bool, default=False
        Whether members are sub-models of a few chains instead of a chain each.
    n_chains : int or None, default=None
        Chains that virtual members are taken from; None: 1. From 1 to 1000.
    burn_in : float, default=0.5
        Part of a chain before the first virtual member. From 0 to 0.99.
    validation_fraction : float, default=0.2
        Part of the training rows held out where something is chosen on them and none are given. From 0.01 to 0.5.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGLBRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = SGLBRegressor(n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.predict_dist(X).interval(0.9).shape
    (40, 2)
    """

    _family = "sglb"

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        growth: Literal["symmetric", "depthwise", "leafwise"] = "symmetric",
        max_leaves: int = 31,
        l2: float = 3.0,
        min_child_weight: float = 0.001,
        subsample: float = 1.0,
        colsample: float = 1.0,
        max_bins: int = 255,
        interactions: bool | None = None,
        head: Literal["normal", "squared"] = "normal",
        monotone: dict[str, int] | None = None,
        sampling: Literal["posterior", "malinin", "split-noise"] = "posterior",
        shrink_rate: float | None = None,
        n_members: int = 10,
        virtual: bool = False,
        n_chains: int | None = None,
        burn_in: float = 0.5,
        validation_fraction: float = 0.2,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.growth = growth
        self.max_leaves = max_leaves
        self.l2 = l2
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample = colsample
        self.max_bins = max_bins
        self.interactions = interactions
        self.head = head
        self.monotone = monotone
        self.sampling = sampling
        self.shrink_rate = shrink_rate
        self.n_members = n_members
        self.virtual = virtual
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.validation_fraction = validation_fraction
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class SGLBClassifier(Classifier):
    """Langevin boosting for classification.

    Langevin boosting: boosted hard trees whose members are posterior samples.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_estimators : int, default=1000
        Trees of each chain. From 1 to 100000.
    learning_rate : float or None, default=None
        Step size; None: chosen on held-out rows. From 1e-05 to 1.
    max_depth : int or None, default=None
        Levels of a tree; None: chosen on held-out rows. From 0 to 16.
    growth : {"symmetric", "depthwise", "leafwise"}, default="symmetric"
        How a tree grows.
    max_leaves : int, default=31
        Most leaves of a tree that grows leaf by leaf. From 2 to 65536.
    l2 : float, default=3.0
        Rows of typical curvature added to every leaf. From 0 to 1e+06.
    min_child_weight : float, default=0.001
        Least weight of a leaf (classification: least curvature). From 0 to 1e+12.
    subsample : float, default=1.0
        Part of the rows that the tests of a tree are chosen on. From 0.01 to 1.
    colsample : float, default=1.0
        Part of the columns that the tests of a tree are chosen from. From 0.01 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    interactions : bool or None, default=None
        Whether categories are also looked at together; None: where held-out rows gain by it.
    head : {"normal", "squared"}, default="normal"
        What a regression model predicts besides the mean.
    monotone : dict of column names and directions (1 or -1) or None, default=None
        Columns in which the mean (or the logit of the second of two classes) may only rise or only fall.
    class_weight : dict of classes and weights, "balanced" or None, default=None
        Weights of the classes, times those of the rows; balanced: each class counts the same altogether. From 0 to
        1e+06.
    sampling : {"posterior", "malinin", "split-noise"}, default="posterior"
        Where the noise goes.
    shrink_rate : float or None, default=None
        Shrinkage of the sum before each tree, times the step size; None: 1/(2 N), for classes at least 0.01. From 0
        to 1.
    n_members : int, default=10
        Members. From 1 to 1000.
    virtual : bool, default=False
        Whether members are sub-models of a few chains instead of a chain each.
    n_chains : int or None, default=None
        Chains that virtual members are taken from; None: 1. From 1 to 1000.
    burn_in : float, default=0.5
        Part of a chain before the first virtual member. From 0 to 0.99.
    validation_fraction : float, default=0.2
        Part of the training rows held out where something is chosen on them and none are given. From 0.01 to 0.5.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the probabilities.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGLBClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = SGLBClassifier(n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _family = "sglb"

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learning_rate: float | None = None,
        max_depth: int | None = None,
        growth: Literal["symmetric", "depthwise", "leafwise"] = "symmetric",
        max_leaves: int = 31,
        l2: float = 3.0,
        min_child_weight: float = 0.001,
        subsample: float = 1.0,
        colsample: float = 1.0,
        max_bins: int = 255,
        interactions: bool | None = None,
        head: Literal["normal", "squared"] = "normal",
        monotone: dict[str, int] | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        sampling: Literal["posterior", "malinin", "split-noise"] = "posterior",
        shrink_rate: float | None = None,
        n_members: int = 10,
        virtual: bool = False,
        n_chains: int | None = None,
        burn_in: float = 0.5,
        validation_fraction: float = 0.2,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.growth = growth
        self.max_leaves = max_leaves
        self.l2 = l2
        self.min_child_weight = min_child_weight
        self.subsample = subsample
        self.colsample = colsample
        self.max_bins = max_bins
        self.interactions = interactions
        self.head = head
        self.monotone = monotone
        self.class_weight = class_weight
        self.sampling = sampling
        self.shrink_rate = shrink_rate
        self.n_members = n_members
        self.virtual = virtual
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.validation_fraction = validation_fraction
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class ForestRegressor(Regressor):
    """Random forest for regression.

    Random forest: bagged hard trees, in blocks that are its members.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_estimators : int, default=200
        Trees. From 1 to 100000.
    max_depth : int, default=30
        Levels of a tree. From 0 to 1000.
    min_child_weight : float or None, default=None
        Least weight of a leaf, in rows; None: 1, and more beyond 50 000 rows, so that a tree has no more leaves
        than that. From 0 to 1e+12.
    colsample : float or None, default=None
        Part of the columns that each split is chosen from; None: 0.6, for classes the square root of their number.
        From 0 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    n_members : int, default=10
        Members: blocks of consecutive trees. From 1 to 1000.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import ForestRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = ForestRegressor(n_estimators=20, n_members=2, random_state=0).fit(X, y)
    >>> model.predict_dist(X).interval(0.9).shape
    (40, 2)
    """

    _family = "forest"

    def __init__(
        self,
        *,
        n_estimators: int = 200,
        max_depth: int = 30,
        min_child_weight: float | None = None,
        colsample: float | None = None,
        max_bins: int = 255,
        n_members: int = 10,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.colsample = colsample
        self.max_bins = max_bins
        self.n_members = n_members
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class ForestClassifier(Classifier):
    """Random forest for classification.

    Random forest: bagged hard trees, in blocks that are its members.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    n_estimators : int, default=200
        Trees. From 1 to 100000.
    max_depth : int, default=30
        Levels of a tree. From 0 to 1000.
    min_child_weight : float or None, default=None
        Least weight of a leaf, in rows; None: 1, and more beyond 50 000 rows, so that a tree has no more leaves
        than that. From 0 to 1e+12.
    colsample : float or None, default=None
        Part of the columns that each split is chosen from; None: 0.6, for classes the square root of their number.
        From 0 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    n_members : int, default=10
        Members: blocks of consecutive trees. From 1 to 1000.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the probabilities.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import ForestClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = ForestClassifier(n_estimators=20, n_members=2, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _family = "forest"

    def __init__(
        self,
        *,
        n_estimators: int = 200,
        max_depth: int = 30,
        min_child_weight: float | None = None,
        colsample: float | None = None,
        max_bins: int = 255,
        n_members: int = 10,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.colsample = colsample
        self.max_bins = max_bins
        self.n_members = n_members
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class TreeRegressor(Regressor):
    """Classification or regression tree for regression.

    Classification or regression tree: one tree of hard tests, pruned by cross-validation.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    max_depth : int, default=30
        Levels that the tree may grow before it is pruned. From 0 to 1000.
    min_child_weight : float, default=5.0
        Least weight of a leaf, in rows. From 0 to 1e+12.
    max_leaves : int or None, default=None
        Most leaves, cut back to by weakest links; None: no limit. From 1 to 1e+06.
    ccp_alpha : float or None, default=None
        Part of the root's loss that a split must take away for every leaf it adds; None: chosen by cross-
        validation. From 0 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    n_members : int, default=10
        Members: draws of what the leaves hold. From 1 to 1000.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import TreeRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = TreeRegressor(n_members=4, random_state=0).fit(X, y)
    >>> model.predict_dist(X).interval(0.9).shape
    (40, 2)
    """

    _family = "tree"

    def __init__(
        self,
        *,
        max_depth: int = 30,
        min_child_weight: float = 5.0,
        max_leaves: int | None = None,
        ccp_alpha: float | None = None,
        max_bins: int = 255,
        n_members: int = 10,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.max_leaves = max_leaves
        self.ccp_alpha = ccp_alpha
        self.max_bins = max_bins
        self.n_members = n_members
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs


class TreeClassifier(Classifier):
    """Classification or regression tree for classification.

    Classification or regression tree: one tree of hard tests, pruned by cross-validation.

    Where a parameter may be None, the model chooses.

    Parameters
    ----------
    max_depth : int, default=30
        Levels that the tree may grow before it is pruned. From 0 to 1000.
    min_child_weight : float, default=5.0
        Least weight of a leaf, in rows. From 0 to 1e+12.
    max_leaves : int or None, default=None
        Most leaves, cut back to by weakest links; None: no limit. From 1 to 1e+06.
    ccp_alpha : float or None, default=None
        Part of the root's loss that a split must take away for every leaf it adds; None: chosen by cross-
        validation. From 0 to 1.
    max_bins : int, default=255
        Most bins of a column. From 2 to 255.
    n_members : int, default=10
        Members: draws of what the leaves hold. From 1 to 1000.
    min_scale : float or None, default=None
        Least standard deviation, in units of the target's; None: 0.001, or half the target's resolution. From 1e-06
        to 10.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number. The same seed, data and version give the same model on any number of threads;
        an integer means what `--seed` means on the command line.
    n_jobs : int or None, default=None
        Threads; None and -1 take one per core.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where the table had names.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the probabilities.
    training_ : dict
        How the model came about: loss curve, what was tried and what was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import TreeClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.5, "high", "low")
    >>> model = TreeClassifier(n_members=4, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['high', 'low']
    """

    _family = "tree"

    def __init__(
        self,
        *,
        max_depth: int = 30,
        min_child_weight: float = 5.0,
        max_leaves: int | None = None,
        ccp_alpha: float | None = None,
        max_bins: int = 255,
        n_members: int = 10,
        min_scale: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.max_leaves = max_leaves
        self.ccp_alpha = ccp_alpha
        self.max_bins = max_bins
        self.n_members = n_members
        self.min_scale = min_scale
        self.random_state = random_state
        self.n_jobs = n_jobs
