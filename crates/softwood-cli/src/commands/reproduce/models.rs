//! Our models of a table: those of its file, or those that the user names.

use softwood::{Error, Family, ModelSpec, Result};

use super::published::{ComparedModel, PublishedTable};
use crate::commands::settings::{merge, texts_of};

/// A model to run, and the rows of the paper that it is compared with.
#[derive(Debug)]
pub(crate) struct ReproducedModel {
    pub(crate) name: String,
    pub(crate) spec: ModelSpec,
    pub(crate) rows: Vec<String>,
    /// Parameters of the table's file that differ from the defaults, as `KEY=VALUE`.
    pub(crate) settings: Vec<String>,
}

/// The models of a table. `names` selects by name or family; families that the table does not have
/// run with their default parameters.
pub(crate) fn selected(
    table: &PublishedTable,
    names: &[String],
    is_quick: bool,
) -> Result<Vec<ReproducedModel>> {
    if names.is_empty() {
        return table
            .models
            .iter()
            .map(|model| of_table(model, is_quick))
            .collect();
    }
    let mut models = Vec::new();
    for name in names {
        let is_meant = |model: &&ComparedModel| model.name == *name;
        let is_family = |model: &&ComparedModel| model.family.as_ref() == Some(name);
        let known = table.models.iter().find(is_meant);
        match known.or_else(|| table.models.iter().find(is_family)) {
            Some(model) => models.push(of_table(model, is_quick)?),
            None if is_elsewhere(name) => {}
            None => models.push(ReproducedModel {
                name: name.clone(),
                spec: Family::from_name(name)?.params(&[])?,
                rows: Vec::new(),
                settings: Vec::new(),
            }),
        }
    }
    Ok(models)
}

/// Whether the name is that of a model of another table, such as `sgb-single`, and not of a family.
fn is_elsewhere(name: &str) -> bool {
    let is_family = Family::ALL.iter().any(|family| family.name() == name);
    let mut models = super::catalogue::tables()
        .into_iter()
        .flat_map(|table| table.models);
    !is_family && models.any(|model| model.name == name)
}

fn of_table(model: &ComparedModel, is_quick: bool) -> Result<ReproducedModel> {
    let Some(family) = &model.family else {
        let problem = format!(
            "model `{}` has no family in the file of its table",
            model.name
        );
        return Err(Error::Parameters(vec![problem]));
    };
    let mut pairs = texts_of(&model.params);
    if is_quick {
        pairs = merge(pairs, &texts_of(&model.quick));
    }
    Ok(ReproducedModel {
        name: model.name.clone(),
        spec: Family::from_name(family)?.params(&pairs)?,
        rows: model.rows.clone(),
        settings: pairs
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
    })
}
