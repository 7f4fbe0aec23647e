//! Tests of the library through its public interface: one test binary, one module per behaviour.

// a failed unwrap fails the test, in helper functions too
#![allow(clippy::unwrap_used)]

mod bandit;
mod cancellation;
mod categories;
mod causal;
mod class_weights;
mod contract;
mod coverage;
mod design;
mod determinism;
mod exact;
mod extrapolation;
mod file_ranges;
mod files;
mod fixtures;
mod gp;
mod invariance;
mod langevin;
mod layers;
mod ldt;
mod long_questions;
mod many_classes;
mod members;
mod monotone;
mod observers;
mod odd_tables;
mod paired;
mod permutation_importance;
mod predictive;
mod problems;
mod protocols;
mod rnn_tree;
mod saving;
mod soft_tree;
mod tree_export;
mod trees;
mod vart;
mod vsgbm;
mod vst;
