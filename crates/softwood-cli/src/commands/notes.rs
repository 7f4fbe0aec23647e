//! Warnings about fitted models: stopped fits and members whose knowledge uncertainty is not
//! meaningful.

use softwood::Model;
use softwood::model::Training;

/// The note of a fit that was stopped.
const STOPPED: &str = "the fit was stopped by the time limit; the model is the best one until then";

/// A note for a fit that was stopped, and the warning of the member diagnostics.
pub(crate) fn on_training(training: &Training) -> Vec<String> {
    let members = training.members.as_ref();
    let warning = members.and_then(|members| members.warning.clone());
    let stopped = training.is_stopped.then(|| STOPPED.to_owned());
    stopped.into_iter().chain(warning).collect()
}

/// A warning for a model with one member, whose knowledge uncertainty is always zero.
pub(crate) fn on_members(model: &dyn Model) -> Option<String> {
    let warning = "the model has one member, so its knowledge (epistemic) uncertainty is zero on every row; \
                   fit a model with more members (parameter n_members)";
    (model.n_members() == 1).then(|| warning.to_owned())
}
