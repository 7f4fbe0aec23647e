"""Tests of two models; the golden values are of scipy 1.17.1."""

from __future__ import annotations

import numpy as np
import pytest

from softwood.significance import diebold_mariano, f_test_5x2cv, paired_t_test

A = [0.31, 0.28, 0.35, 0.40, 0.29, 0.33, 0.30, 0.37, 0.36, 0.32]
B = [0.27, 0.26, 0.33, 0.36, 0.30, 0.31, 0.25, 0.35, 0.30, 0.31]


def test_a_paired_t_test_is_that_of_scipy() -> None:
    # the test of related samples of scipy.stats
    assert paired_t_test(A, B) == pytest.approx((4.149755708586337, 0.002485286229174293, 0.027), rel=1e-9)


def test_errors_of_a_5x2cv_test_may_be_a_matrix() -> None:
    # the formula in numpy, and scipy.stats.f.sf(F, 10, 5)
    expected = pytest.approx((2.176470588235294, 0.2021376413418873, 0.027), rel=1e-9)
    assert f_test_5x2cv(A, B) == expected
    assert f_test_5x2cv(np.reshape(A, (5, 2)), np.reshape(B, (5, 2))) == expected


def test_a_diebold_mariano_test_of_one_step_is_a_paired_t_test() -> None:
    assert diebold_mariano(A, B) == pytest.approx(paired_t_test(A, B), rel=1e-9)
    # the formula in numpy, and 2 * scipy.stats.t.sf(|DM|, 9)
    assert diebold_mariano(A, B, h=3) == pytest.approx((4.644304764855041, 0.0012118495068849, 0.027), rel=1e-9)


def test_arguments_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="10 numbers of one model and 9"):
        paired_t_test(A, B[1:])
    with pytest.raises(ValueError, match="position 0"):
        paired_t_test([np.nan, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="b has 2 dimensions"):
        paired_t_test(A, [B])
    with pytest.raises(ValueError, match="at least 10"):
        f_test_5x2cv(A[:8], B[:8])
    with pytest.raises(ValueError, match="h=0"):
        diebold_mariano(A, B, h=0)
