//! Contextual bandits: agents that choose an arm for each context by a predictive distribution of its
//! reward, problems with known rewards to compare them on, and estimates of a policy's value from
//! logged choices.
//!
//! A [`BanditAgent`] serves a user's own loop: [`BanditAgent::choose`] an arm, act,
//! [`BanditAgent::observe`] the reward; [`BanditAgent::play`] is such a loop with rewards from a
//! function. [`simulate`] runs an agent on a [`BanditProblem`], whose rewards are known for every arm,
//! and sums the regret.
//!
//! ```
//! use softwood::decide::bandit::{AgentSettings, BanditProblem, simulate};
//! use softwood::observer::NoObserver;
//! use softwood::{Column, Key, Pool, Table};
//!
//! // the second arm pays more where x is positive
//! let x = Key::from_seed(1).uniforms(300).iter().map(|u| 2.0 * u - 1.0).collect::<Vec<f64>>();
//! let rewards = x.iter().flat_map(|x| [0.0, *x]).collect();
//! let contexts = Table::new(vec![Column::numeric("x", x)])?;
//! let arms = vec!["stay".to_owned(), "go".to_owned()];
//! let problem = BanditProblem::new("example", arms, contexts, rewards)?;
//!
//! let pool = Pool::new(1)?;
//! let linear = simulate(&problem, &AgentSettings::linear(), Key::from_seed(0), &pool, &NoObserver)?;
//! let uniform = simulate(&problem, &AgentSettings::uniform(), Key::from_seed(0), &pool, &NoObserver)?;
//! assert!(linear.total() < 0.5 * uniform.total());
//! # Ok::<(), softwood::Error>(())
//! ```

mod agent;
mod agent_file;
mod arm_draws;
mod linear;
mod play;
mod problem;
mod public_problems;
mod refits;
mod replay;
mod reward_model;
mod settings;
mod simulate;

pub use agent::{ArmChoice, ArmOutcome, BanditAgent};
pub use problem::BanditProblem;
pub use public_problems::PublicProblem;
pub use replay::{LoggedChoices, PolicyValue, PolicyValues, cross_fitted_rewards, replay};
pub use settings::{AgentSettings, ArmPooling, BanditPolicy, RewardFamily};
pub use simulate::{RegretCurve, RegretSummary, simulate, simulate_seeds};
