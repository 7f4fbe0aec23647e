//! Figures 3, 4, 5 and 7 of Cinquin et al. 2023: scores of `vst` and `vsgbm` against rank, depth,
//! number of trees and sharpness of the gates. That figure 3 is about the rank is known; the other
//! sweeps are our reading.

use super::sweep::ParameterSweep;
use super::{Figure, FigureData};

const SETS: &[&str] = &["boston", "yacht", "concrete", "energy"];
const SCORES: &[(&str, &str)] = &[
    ("log_likelihood_std", "log-likelihood per test row"),
    ("rmse_std", "RMSE of the test rows"),
];

/// One fit of the tree of the paper, on standardised columns.
const RANK_SWEEP: ParameterSweep = ParameterSweep {
    family: "vst",
    param: "rank",
    x_name: "rank of the posterior covariance",
    values: &["0", "1", "2", "5", "10", "20", "50"],
    quick_values: &["0", "2", "10"],
    fixed: &[
        ("max_depth", "3"),
        ("leaf_model", "linear"),
        ("leaf_mixing", "mixture"),
        ("prior", "fixed"),
        ("n_fits", "1"),
        ("n_epochs", "400"),
        ("scaling", "standard"),
        ("rotation", "none"),
        ("squares", "false"),
        ("extrapolation", "false"),
    ],
    scores: &[
        (
            "one_split_auroc_knowledge",
            "AUROC of a tree with one split",
        ),
        ("auroc_knowledge", "AUROC of the ranks"),
    ],
    subtitle: "vst of depth 3 with linear leaves, knowledge uncertainty of its weights alone",
};

const DEPTH_SWEEP: ParameterSweep = ParameterSweep {
    family: "vst",
    param: "max_depth",
    x_name: "depth of the tree",
    values: &["0", "1", "2", "3", "4", "5", "6"],
    quick_values: &["0", "2", "4"],
    fixed: &[
        ("leaf_model", "linear"),
        ("n_fits", "1"),
        ("n_epochs", "400"),
    ],
    scores: SCORES,
    subtitle: "vst with linear leaves; standardised target",
};

const TREE_SWEEP: ParameterSweep = ParameterSweep {
    family: "vsgbm",
    param: "n_estimators",
    x_name: "number of trees",
    values: &["1", "2", "3", "5", "8"],
    quick_values: &["1", "3"],
    fixed: &[
        ("max_depth", "2"),
        ("leaf_model", "linear"),
        ("n_fits", "1"),
        ("n_epochs", "400"),
    ],
    scores: SCORES,
    subtitle: "vsgbm of trees of depth 2 with linear leaves; standardised target",
};

const SHARPNESS_SWEEP: ParameterSweep = ParameterSweep {
    family: "vst",
    param: "beta",
    x_name: "inverse temperature of the gates",
    values: &["0.3", "1", "3", "10", "30"],
    quick_values: &["0.3", "3", "30"],
    fixed: &[
        ("max_depth", "3"),
        ("leaf_model", "linear"),
        ("prior", "fixed"),
        ("n_fits", "1"),
        ("n_epochs", "400"),
    ],
    scores: SCORES,
    subtitle: "vst of depth 3 with linear leaves and a fixed prior; standardised target",
};

pub(crate) const RANK: Figure = Figure {
    name: "vst-figure-3",
    paper: "vst",
    place: "figure 3",
    title: "out-of-domain detection against the rank of the posterior covariance",
    caption: "How well knowledge uncertainty separates test rows from rows of another table, when the posterior may \
              have more correlations between weights.",
    reading: None,
    data: Some(FigureData {
        table: "vst-2",
        sets: SETS,
    }),
    draw: |figure, run| RANK_SWEEP.draw(figure, run),
};

/// What the sweeps of unknown figures share; each replaces the texts and the drawing.
const OUR_READING: Figure = Figure {
    name: "",
    paper: "vst",
    place: "",
    title: "",
    caption: "",
    reading: Some(
        "The content of this figure of the paper is not known to us: the sweep is our reading.",
    ),
    data: Some(FigureData {
        table: "vst-1",
        sets: SETS,
    }),
    draw: |figure, run| DEPTH_SWEEP.draw(figure, run),
};

pub(crate) const DEPTH: Figure = Figure {
    name: "vst-figure-4",
    place: "figure 4",
    title: "scores of a variational soft tree against its depth",
    caption: "Depth 0 is a single linear leaf; most of the gain comes with the first levels.",
    draw: |figure, run| DEPTH_SWEEP.draw(figure, run),
    ..OUR_READING
};

pub(crate) const TREES: Figure = Figure {
    name: "vst-figure-5",
    place: "figure 5",
    title: "scores of boosted variational soft trees against the number of trees",
    caption: "What further trees add to a first shallow tree.",
    draw: |figure, run| TREE_SWEEP.draw(figure, run),
    ..OUR_READING
};

pub(crate) const SHARPNESS: Figure = Figure {
    name: "vst-figure-7",
    place: "figure 7",
    title: "scores of a variational soft tree against the sharpness of its gates",
    caption: "With a small inverse temperature the splits are blurred, with a large one they are nearly hard.",
    draw: |figure, run| SHARPNESS_SWEEP.draw(figure, run),
    ..OUR_READING
};
