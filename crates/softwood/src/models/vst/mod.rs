//! Variational soft tree: one tree whose gates are soft, with a Gaussian posterior over all its weights.
//!
//! # Model
//!
//! A complete tree of depth `D`. Gate `n` sends row `x` to the right with probability
//! `g_n = sigmoid(beta (w_n.x + b_n))`, so leaf `l` is reached with `P_l(x)`, the product of the gates on its path. Leaf
//! `l` holds a mean and a raw scale, constants or linear functions of `x`: `mu_l(x) = u_l.x + c_l`,
//! `s_l(x) = softplus(v_l.x + d_l) + floor`. Three readings of the leaves as one distribution ([`LeafMixing`]):
//!
//! - *mixture*: `p(y|x) = sum_l P_l N(y; mu_l, s_l^2)`
//! - *blend*: `p(y|x) = N(y; sum_l P_l mu_l, s^2)`, `s = softplus(sum_l P_l raw_l) + floor`
//! - *hybrid*: the top `m` levels choose one of `2^m` components, the levels below blend inside it; `m = 0` is blend,
//!   `m = D` is mixture
//!
//! For classes, a leaf holds one logit per class and a component is their softmax; the readings are the same.
//!
//! All weights `theta` are uncertain: prior `N(0, diag(tau^2))`, posterior `q = N(mu, D (I + U U') D)` with
//! `D = diag(sd)` and `U` of `rank` columns. Training maximises the ELBO,
//! `E_q[sum_i weight_i ln p(y_i | x_i, theta)] - kl_weight KL(q | prior)`, by Adam on minibatches with antithetic draws;
//! the prior variances `tau^2` are set to their closed-form maximisers as training goes ([`Prior`]). The members of the
//! fitted model are draws from `q`: each is one tree, the same on every row. A category that training never saw is to
//! each member one of those that it did see, so that members differ about it by as much as the categories do.
//!
//! Training starts from a greedy hard tree with ridge fits in its leaves; the KL term grows to its full weight over the
//! first half of a run. Depth, reading, leaves, scaling, rotation and squares that are left open are chosen by held-out
//! log-likelihood: short runs of many, longer runs of the best, and full runs of the `n_fits` best, whose posteriors are
//! averaged. The repository's `docs/maths/vst.md` has the gradients and what differs
//! from the paper.
//!
//! # When to use it
//!
//! Tables of up to some tens of thousands of rows whose target varies smoothly, whose noise changes with the inputs, or
//! whose noise is not Normal (mixtures take several modes and heavy tails). Linear leaves extrapolate linearly, and their
//! knowledge uncertainty grows with the distance from the data; constant leaves saturate. It is less suited to targets
//! with many sharp steps along single columns, where hard trees need fewer splits, and to columns of very many
//! categories, of which only the most frequent get inputs of their own. Time grows with rows x 2^depth x inputs.
//!
//! # Reference
//!
//! Cinquin, Rukat, Schmidt, Wistuba, Bekasov, "Variational Boosted Soft Trees", AISTATS 2023: the mixture reading, the
//! ELBO and the closed-form KL (their equation 21, here in the parametrisation above).
//!
//! # Example
//!
//! ```
//! use softwood::{
//!     Column, Dataset, Distribution, Fit, Key, LeafMixing, Pool, Posterior, Roles, Run, Silent, Table, VstParams,
//! };
//!
//! // a step whose noise is small on the left and large on the right
//! let x: Vec<f64> = (0..300).map(|row| f64::from(row) / 150.0 - 1.0).collect();
//! let noise = |row: i32| f64::from(row * 11 % 23 - 11) / 11.0;
//! let y = (0..).zip(&x).map(|(row, &x)| if x < 0.0 { 0.02 * noise(row) } else { 1.0 + 0.5 * noise(row) });
//! let table = Table::new(vec![Column::numeric("y", y.collect()), Column::numeric("x", x)])?;
//! let data = Dataset::from_table(&table, &Roles { target: "y".to_owned(), ..Roles::default() })?;
//!
//! let params = VstParams {
//!     depth: Some(2),
//!     leaf_mixing: Some(LeafMixing::Mixture),
//!     n_epochs: Some(100),
//!     ..VstParams::default()
//! };
//! let pool = Pool::new(0)?;
//! let run = Run { key: Key::from_seed(0), pool: &pool, watch: &Silent, held_out: None };
//! let model = params.fit(&data, &run)?;
//! assert!(model.training().chosen.starts_with("mixture, depth 2"));
//!
//! let rows = Table::new(vec![Column::numeric("x", vec![-0.5, 0.5])])?;
//! let sd = Distribution::new(&model, &rows, &pool)?.sd()?;
//! assert!(sd[1] > 2.0 * sd[0]);
//! # Ok::<(), softwood::Error>(())
//! ```

mod choose;
mod learn;
mod params;
mod posterior;
mod probe;
mod problem;
mod start;
mod train;

pub use params::{Leaf, LeafMixing, Prior, VstParams};
pub use posterior::Vst;
pub use probe::{ProbeShape, StepProbe};
