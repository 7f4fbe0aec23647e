"""Models of `benches.truth`: Softwood's families with default parameters, and other libraries.

A model is a function of training features, target and seed that returns a predictor: features to a forecast.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.truth_scores import Forecast, NormalMixture

Array = NDArray[np.float64]
Predictor = Callable[[Array], Forecast]
Learner = Callable[[Array, Array, int], Predictor]

MAX_GP_ROWS = 1000
"""scikit-learn's Gaussian process is fitted to so many rows: its memory and time grow fast."""
N_BAGS = 20
N_VIRTUAL = 10
N_BART_DRAWS = 200


def softwood(estimator: str, x: Array, y: Array, seed: int) -> Predictor:
    """Fit a family with default parameters."""
    import softwood as sw

    model = getattr(sw, estimator)(random_state=seed, n_jobs=1).fit(x, y)
    predict: Predictor = model.predict_dist
    return predict


def sklearn_gp(x: Array, y: Array, seed: int) -> Predictor:
    """Fit scikit-learn's Gaussian process with one length scale per input and constant noise."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(seed).permutation(len(y))[:MAX_GP_ROWS]
    x, y = x[rows], y[rows]
    kernel = ConstantKernel() * RBF([1.0] * x.shape[1]) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), process).fit(x, y)
    noise = process.kernel_.k2.noise_level * np.std(y) ** 2

    def predict(rows: Array) -> Forecast:
        mean, std = model.predict(rows, return_std=True)
        return NormalMixture(mean[:, None], std[:, None], np.maximum(std**2 - noise, 0.0))

    return predict


def bagged_boosting(x: Array, y: Array, seed: int) -> Predictor:
    """Fit scikit-learn's histogram boosting on bootstrap samples; the noise is that of out-of-bag residuals."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    random = np.random.default_rng(seed)
    members, sums, counts = [], np.zeros(len(y)), np.zeros(len(y))
    for member in range(N_BAGS):
        rows = random.integers(len(y), size=len(y))
        model = HistGradientBoostingRegressor(early_stopping=False, random_state=seed + member).fit(x[rows], y[rows])
        members.append(model)
        is_out = np.ones(len(y), dtype=bool)
        is_out[rows] = False
        sums[is_out] += model.predict(x[is_out])
        counts[is_out] += 1
    seen = counts > 0
    noise = max(float(np.sqrt(np.mean((y[seen] - sums[seen] / counts[seen]) ** 2))), 1e-6 * float(np.std(y)))

    def predict(rows: Array) -> Forecast:
        means = np.stack([model.predict(rows) for model in members], axis=1)
        return NormalMixture(means, np.full_like(means, noise))

    return predict


def catboost(x: Array, y: Array, seed: int) -> Predictor:
    """Fit CatBoost's Langevin boosting of mean and scale with default parameters; members are its virtual ensemble."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        thread_count=1,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
    ).fit(x, y)

    def predict(rows: Array) -> Forecast:
        raw = np.asarray(
            model.virtual_ensembles_predict(
                rows, prediction_type="VirtEnsembles", virtual_ensembles_count=N_VIRTUAL, thread_count=1
            )
        )
        return NormalMixture(raw[:, :, 0], np.sqrt(raw[:, :, 1] + 1e-8))

    return predict


def ngboost(x: Array, y: Array, seed: int) -> Predictor:
    """Fit NGBoost's Normal distribution with default parameters: one member, no knowledge uncertainty."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(x, y)

    def predict(rows: Array) -> Forecast:
        normal = model.pred_dist(rows).params
        return NormalMixture(normal["loc"][:, None], normal["scale"][:, None])

    return predict


def bart(x: Array, y: Array, seed: int) -> Predictor:
    """Fit stochtree's BART: ten grow-from-root sweeps, 1000 sweeps of burn-in and 1000 draws, every fifth a member."""
    from stochtree import BARTModel

    model = BARTModel()
    every = 5
    model.sample(
        X_train=x,
        y_train=y,
        num_gfr=10,
        num_burnin=1000,
        num_mcmc=every * N_BART_DRAWS,
        general_params={"random_seed": seed, "num_threads": 1},
    )
    stds = np.sqrt(np.asarray(model.global_var_samples).ravel()[-every * N_BART_DRAWS :: every])

    def predict(rows: Array) -> Forecast:
        means = np.asarray(model.predict(rows, terms="y_hat"))[:, ::every]
        return NormalMixture(means, np.broadcast_to(stds, means.shape))

    return predict


FAMILIES = {
    "vst": "VSTRegressor",
    "vsgbm": "VSGBMRegressor",
    "sglb": "SGLBRegressor",
    "sgb": "SGBRegressor",
    "forest": "ForestRegressor",
    "gp": "GPRegressor",
    "vart": "VaRTRegressor",
    "soft-tree": "SoftTreeRegressor",
    "tree": "TreeRegressor",
    "ldt": "LDTRegressor",
    "rnn-tree": "RNNTreeRegressor",
    "gp-rnn-tree": "HeteroscedasticGPRegressor",
}
PEERS: dict[str, tuple[str, Learner]] = {
    "sklearn-gp": ("scikit-learn GP", sklearn_gp),
    "bagged": ("scikit-learn boosting, bagged", bagged_boosting),
    "catboost": ("CatBoost, virtual ensemble", catboost),
    "ngboost": ("NGBoost", ngboost),
    "bart": ("BART (stochtree)", bart),
}
"""Title and learner of the models of other libraries, which the environment `.venv-peers` has."""
MODELS = (*FAMILIES, *PEERS)


def title(model: str) -> str:
    """Return the name of a model in tables."""
    return PEERS[model][0] if model in PEERS else f"`{model}`"


def learner(model: str) -> Learner:
    """Return the learner of a model."""
    return PEERS[model][1] if model in PEERS else partial(softwood, FAMILIES[model])


def version_of(model: str) -> str:
    """Return the library and its version."""
    from importlib.metadata import version

    libraries: dict[str, Any] = {"sklearn-gp": "scikit-learn", "bagged": "scikit-learn", "bart": "stochtree"}
    name = libraries.get(model, "softwood" if model in FAMILIES else model)
    return f"{name} {version(name)}"
