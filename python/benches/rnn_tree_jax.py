"""The training step of `rnn-tree` in JAX: one command of the environment of peers, for `benches.rnn_tree`.

The command first compares the objective with a plain NumPy version in float64, which follows the formulas of the paper
node by node. Then it measures the processor seconds of a step after compilation and prints a line of JSON:

    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false" taskset -c 0 .venv-peers/bin/python -m benches.rnn_tree_jax 300

The network is a gated recurrent unit with a state of its own for the root. Values are features x rows. As in
`rnn-tree`, the entropy of the aggregated decisions of all nodes is the entropy of the leaf occupancies.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import numpy as np

N_ROWS, N_INPUTS, N_HIDDEN, DEPTH = 3000, 8, 16, 8
SHARE, THRESHOLD, DECISION = 2.0, 12.0, 10.0
"""Factors of logits, of thresholds and of decisions that are passed on; those of `rnn-tree` change over a fit."""
LEARNING_RATE, BETA_1, BETA_2, EPSILON = 0.01, 0.9, 0.999, 1e-8
MIN_PROBABILITY, MIN_OCCUPANCY = 1e-6, 1e-9
FORMS = ("direct", "factored")
"""Ways to sum over the leaves: with all leaf probabilities of all rows, or by products of two matrices (see `sums`)."""

Weights = dict[str, Any]


def start(depth: int, n_inputs: int, n_hidden: int, seed: int = 0) -> Weights:
    """Draw weights: gates in the order reset, update, candidate; heads in the order logits, biases, slopes."""
    rng = np.random.default_rng(seed)
    scale = 1 / math.sqrt(n_hidden)

    def uniform(*shape: int) -> Any:
        return rng.uniform(-scale, scale, shape)

    signs = np.where(rng.uniform(size=n_inputs) < 0.5, -1.0, 1.0)
    return {
        "decision": uniform(3 * n_hidden),
        "decision_bias": uniform(3 * n_hidden),
        "state": uniform(3 * n_hidden, n_hidden),
        "state_bias": uniform(3 * n_hidden),
        "root": rng.standard_normal(n_hidden),
        "heads": scale * rng.standard_normal((3 * n_inputs, n_hidden)),
        "head_bias": np.concatenate([np.zeros(2 * n_inputs), signs]),
        "mean": np.quantile(rng.standard_normal(10_000), (np.arange(2**depth) + 0.5) / 2**depth),
        "log_scale": np.zeros(()),
    }


def table(n_rows: int, n_inputs: int, seed: int = 0) -> tuple[Any, Any]:
    """Draw rows (inputs x rows) and a standardised target with steps."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_inputs, n_rows))
    y = (x[0] > 0) + 2 * (x[1] > 0) * (x[2] > 0.5) + np.sin(x[3]) + 0.3 * rng.standard_normal(n_rows)
    return x, (y - y.mean()) / y.std()


# --- NumPy, node by node


def sigmoid(a: Any) -> Any:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-a))


def gated_unit(w: Weights, h: Any, u: Any) -> Any:
    """Return the next state of one row."""
    n = len(h)
    of_decision, of_state = w["decision"] * u + w["decision_bias"], w["state"] @ h + w["state_bias"]
    r = sigmoid(of_decision[:n] + of_state[:n])
    z = sigmoid(of_decision[n : 2 * n] + of_state[n : 2 * n])
    return (1 - z) * np.tanh(of_decision[2 * n :] + r * of_state[2 * n :]) + z * h


def binary_entropy(p: Any) -> Any:
    """Return the entropy of a decision, in nats."""
    p = np.clip(p, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return -p * np.log(p) - (1 - p) * np.log(1 - p)


def reference(w: Weights, x: Any, y: Any, noise: Any, kl_weight: float) -> float:
    """Return the objective: L = sum_n sum_l P_l(x_n) log p(y_n | l) - k sum_d KL_d.

    KL_d = - sum_n H(q_d(x_n)) - sum_v N_v H(alpha_v) + N ln 2, with the sum over the nodes v of level d.
    """
    depth, n_rows = noise.shape
    n_inputs = len(x)
    q = np.zeros((depth, n_rows))
    for row in range(n_rows):
        h = w["root"]
        for d in range(depth):
            if d > 0:
                u = sigmoid(DECISION * (q[d - 1, row] + noise[d - 1, row] - 0.5))
                h = gated_unit(w, h, u)
            heads = w["heads"] @ h + w["head_bias"]
            logits, bias, slope = heads[:n_inputs], heads[n_inputs : 2 * n_inputs], heads[2 * n_inputs :]
            share = np.exp(SHARE * (logits - logits.max()))
            share /= share.sum()
            q[d, row] = share @ sigmoid(THRESHOLD * (bias + slope * x[:, row]))
    kl = 0.0
    prefixes = [np.ones(n_rows)]
    for d in range(depth):
        kl += n_rows * math.log(2) - binary_entropy(q[d]).sum()
        for p in prefixes:
            kl -= p.sum() * float(binary_entropy((p * q[d]).sum() / p.sum()))
        prefixes = [p * side for p in prefixes for side in (1 - q[d], q[d])]
    scale = np.exp(w["log_scale"])
    fit = 0.0
    for p, mean in zip(prefixes, w["mean"], strict=True):
        fit += float((p * (-0.5 * ((y - mean) / scale) ** 2 - np.log(scale) - 0.5 * math.log(2 * math.pi))).sum())
    return fit - kl_weight * kl


# --- JAX


def routes(jnp: Any, q: Any) -> Any:
    """Return the probabilities of the 2^depth routes through some levels, routes x rows."""
    p = jnp.stack([1 - q[0], q[0]])
    for right in q[1:]:
        p = jnp.stack([p * (1 - right), p * right], axis=1).reshape(-1, p.shape[1])
    return p


def sums(jnp: Any, form: str, q: Any, y: Any) -> Any:
    """Return sums over the rows of P_l, P_l y and P_l y^2, leaves x 3.

    A leaf probability is the product of the probabilities of its upper and of its lower decisions. In the form
    `factored`, the sum over the rows is therefore a product of a matrix of upper and one of lower routes.
    """
    powers = jnp.stack([jnp.ones_like(y), y, y * y])
    if form == "direct":
        return routes(jnp, q) @ powers.T
    half = len(q) // 2
    upper, lower = routes(jnp, q[:half]), routes(jnp, q[half:])
    weighted = (upper[:, None, :] * powers).reshape(-1, len(y))
    return (weighted @ lower.T).reshape(len(upper), 3, len(lower)).transpose(0, 2, 1).reshape(-1, 3)


def objective(w: Weights, rows: tuple[Any, Any, Any], kl_weight: float, form: str) -> Any:
    """Return the objective in JAX; the rows are inputs, target and noise."""
    import jax
    import jax.numpy as jnp

    x, y, noise = rows
    depth, n_rows = noise.shape
    n_inputs, n_hidden = len(x), len(w["root"])
    h = jnp.broadcast_to(w["root"][:, None], (n_hidden, n_rows))
    q: list[Any] = []
    for d in range(depth):
        if d > 0:
            u = jax.nn.sigmoid(DECISION * (q[-1] + noise[d - 1] - 0.5))
            of_decision = w["decision"][:, None] * u + w["decision_bias"][:, None]
            of_state = w["state"] @ h + w["state_bias"][:, None]
            gates = jax.nn.sigmoid(of_decision[: 2 * n_hidden] + of_state[: 2 * n_hidden])
            r, z = gates[:n_hidden], gates[n_hidden:]
            h = (1 - z) * jnp.tanh(of_decision[2 * n_hidden :] + r * of_state[2 * n_hidden :]) + z * h
        heads = w["heads"] @ h + w["head_bias"][:, None]
        share = jax.nn.softmax(SHARE * heads[:n_inputs], axis=0)
        threshold = jax.nn.sigmoid(THRESHOLD * (heads[n_inputs : 2 * n_inputs] + heads[2 * n_inputs :] * x))
        q.append((share * threshold).sum(0))
    count, first, second = sums(jnp, form, q, y).T
    precision = jnp.exp(-2 * w["log_scale"])
    squares = second - 2 * w["mean"] * first + w["mean"] ** 2 * count
    fit = -0.5 * precision * squares.sum() - n_rows * (w["log_scale"] + 0.5 * math.log(2 * math.pi))
    occupancy = jnp.maximum(count / n_rows, MIN_OCCUPANCY)
    right = jnp.clip(jnp.stack(q), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    of_rows = -(right * jnp.log(right) + (1 - right) * jnp.log1p(-right)).sum()
    of_nodes = -n_rows * (occupancy * jnp.log(occupancy)).sum()
    return fit - kl_weight * (n_rows * depth * math.log(2) - of_rows - of_nodes)


def training_step(form: str) -> Any:
    """Return the compiled step: noise, gradient and rectified Adam."""
    import jax
    import jax.numpy as jnp

    def step(state: Any, x: Any, y: Any, kl_weight: Any) -> Any:
        w, m, v, t, key = state
        key, used = jax.random.split(key)
        noise = jax.random.uniform(used, (DEPTH, x.shape[1]), minval=-0.5, maxval=0.5)
        value, g = jax.value_and_grad(lambda w: objective(w, (x, y, noise), kl_weight, form) / x.shape[1])(w)
        t += 1
        decay_1, decay_2 = BETA_1**t, BETA_2**t
        m = jax.tree.map(lambda m, g: BETA_1 * m + (1 - BETA_1) * g, m, g)
        v = jax.tree.map(lambda v, g: BETA_2 * v + (1 - BETA_2) * g * g, v, g)
        longest = 2 / (1 - BETA_2) - 1
        length = longest - 2 * t * decay_2 / (1 - decay_2)
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        factor = jnp.sqrt(jnp.maximum(ratio, 0.0))
        rate = LEARNING_RATE / (1 - decay_1)

        def moved(w: Any, m: Any, v: Any) -> Any:
            rectified = factor * m / (jnp.sqrt(v / (1 - decay_2)) + EPSILON)
            return w + rate * jnp.where(length > 5, rectified, m)

        return (jax.tree.map(moved, w, m, v), m, v, t, key), value

    return jax.jit(step, donate_argnums=0)


def check(form: str) -> float:
    """Return the relative difference of the objective from the NumPy version; end the process if it is large."""
    import jax.numpy as jnp

    x, y = table(200, 5, seed=1)
    worst = 0.0
    for depth in (1, 3, 4):
        w = start(depth, 5, 6, seed=depth)
        w["log_scale"] = np.asarray(-0.4)
        noise = np.random.default_rng(2).uniform(-0.5, 0.5, (depth, 200))
        expected = reference(w, x, y, noise, 0.7)
        if depth > 1 or form == "direct":
            single = {name: jnp.asarray(value, jnp.float32) for name, value in w.items()}
            rows = (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(noise, jnp.float32))
            worst = max(worst, abs(float(objective(single, rows, 0.7, form)) / expected - 1))
    if worst > 1e-4:
        raise SystemExit(f"the objective of JAX, form {form}, differs from the formulas by a factor of 1 + {worst}")
    return worst


def measure(form: str, n_steps: int) -> dict[str, float]:
    """Return processor and elapsed seconds of a step after compilation, best of five runs of a fifth of the steps."""
    import jax
    import jax.numpy as jnp

    x, y = (jnp.asarray(value, jnp.float32) for value in table(N_ROWS, N_INPUTS))
    w = {name: jnp.asarray(value, jnp.float32) for name, value in start(DEPTH, N_INPUTS, N_HIDDEN).items()}
    m, v = (jax.tree.map(jnp.zeros_like, w) for _ in range(2))
    state = (w, m, v, jnp.zeros(()), jax.random.key(0))
    step = training_step(form)
    begin = time.process_time()
    state, value = step(state, x, y, 1.0)
    first = float(value)
    compilation = time.process_time() - begin
    processor, elapsed = [], []
    n_run = max(1, n_steps // 5)
    for _ in range(5):
        begin, begin_clock = time.process_time(), time.perf_counter()
        for _ in range(n_run):
            state, value = step(state, x, y, 1.0)
        last = float(value)
        processor.append((time.process_time() - begin) / n_run)
        elapsed.append((time.perf_counter() - begin_clock) / n_run)
    if not last > first:
        raise SystemExit(f"the objective of JAX, form {form}, did not grow: {first} and {last}")
    return {
        "step_seconds": min(processor),
        "elapsed_seconds": min(elapsed),
        "compile_seconds": compilation,
        "difference": check(form),
        "first_objective": first,
        "last_objective": last,
    }


def main() -> None:
    """Measure all forms; print one line."""
    import jax

    n_steps = int(sys.argv[1])
    found: dict[str, Any] = {form: measure(form, n_steps) for form in FORMS}
    print(json.dumps(found | {"version": jax.__version__}))


if __name__ == "__main__":
    main()
