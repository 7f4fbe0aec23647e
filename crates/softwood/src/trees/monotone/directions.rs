//! Columns that the prediction rises or falls in, as a user names them.

use crate::data::dataset::Dataset;
use crate::data::schema::FieldKind;
use crate::error::{Error, Result};
use crate::params::Directions;

/// A direction for each column of the schema: 1, -1, or 0 where none was given.
///
/// # Errors
/// When there are more than two classes, a column is not there, or it holds categories: all that is wrong is named.
pub(crate) fn orders(given: Option<&Directions>, data: &Dataset) -> Result<Vec<i8>> {
    let schema = data.schema();
    let mut orders = vec![0; schema.fields.len()];
    let Some(Directions(given)) = given.filter(|given| !given.0.is_empty()) else {
        return Ok(orders);
    };
    let mut broken = Vec::new();
    if let Some(classes) = schema.classes().filter(|classes| classes.len() > 2) {
        broken.push(format!(
            "`monotone` needs a number or two classes as target, of which the second rises or falls; `{}` has {} classes",
            schema.target,
            classes.len()
        ));
    }
    for (name, &direction) in given {
        let found = schema.fields.iter().position(|field| field.name == *name);
        match found.map(|at| (at, &schema.fields[at].kind)) {
            Some((at, FieldKind::Numeric)) => orders[at] = direction,
            Some((_, FieldKind::Categorical { .. })) => broken.push(format!(
                "`monotone`: the column `{name}` holds categories, which have no order"
            )),
            None => broken.push(format!(
                "`monotone`: there is no column `{name}`; there are {}",
                data.features().some_names()
            )),
        }
    }
    if broken.is_empty() {
        return Ok(orders);
    }
    Err(Error::Parameters(broken))
}
