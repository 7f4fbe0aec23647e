//! The parameter `monotonic_cst`: directions by column name.

use crate::data::dataset::Dataset;
use crate::data::schema::FieldKind;
use crate::error::{Error, Result};
use crate::params::Directions;

/// The direction of each column of the schema: 1 increasing, -1 decreasing, 0 unconstrained.
///
/// # Errors
/// When the target has more than two classes, or a named column is missing or categorical. The
/// error lists all problems.
pub(crate) fn orders(monotonic_cst: Option<&Directions>, data: &Dataset) -> Result<Vec<i8>> {
    let schema = data.schema();
    let mut directions = vec![0; schema.fields.len()];
    let Some(Directions(by_name)) = monotonic_cst.filter(|by_name| !by_name.0.is_empty()) else {
        return Ok(directions);
    };
    let mut problems = Vec::new();
    if let Some(classes) = schema.classes().filter(|classes| classes.len() > 2) {
        problems.push(format!(
            "`monotonic_cst` needs a numeric target, or two classes, to constrain the probability of the second; `{}` has {} classes",
            schema.target,
            classes.len()
        ));
    }
    for (name, &direction) in by_name {
        let column = schema.fields.iter().position(|field| field.name == *name);
        match column.map(|column| (column, &schema.fields[column].kind)) {
            Some((column, FieldKind::Numeric)) => directions[column] = direction,
            Some((_, FieldKind::Categorical { .. })) => problems.push(format!(
                "`monotonic_cst`: the column `{name}` is categorical; only numeric columns can be constrained"
            )),
            None => problems.push(format!(
                "`monotonic_cst`: there is no column `{name}`; there are {}",
                data.features().some_names()
            )),
        }
    }
    if problems.is_empty() {
        return Ok(directions);
    }
    Err(Error::Parameters(problems))
}
