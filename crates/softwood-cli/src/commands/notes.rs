//! Warnings about columns that are probably not meant as categories, and about models whose
//! knowledge uncertainty is not meaningful.

use softwood::data::FieldKind;
use softwood::model::Training;
use softwood::{Dataset, Model};

/// Tables with fewer rows are not checked for columns with many distinct values.
const MIN_ROWS: usize = 20;

/// The note of a fit that was stopped.
const STOPPED: &str = "the fit was stopped by the time limit; the model is the best one until then";

/// One sentence for each text column that looks like identifiers or dates, for a fit that was
/// stopped, and for the warning of the member diagnostics.
pub(crate) fn of(data: &Dataset, training: &Training) -> Vec<String> {
    let members = training.members.as_ref();
    let warning = members.and_then(|members| members.warning.clone());
    let fields = data.schema().fields.iter();
    fields
        .filter_map(|field| match &field.kind {
            FieldKind::Categorical { levels } => {
                let what = suspicion(levels, data.n_rows())?;
                Some(format!(
                    "column `{0}` {what}; if this is not intended, convert it to numbers or leave it out (--ignore {0})",
                    field.name
                ))
            }
            _ => None,
        })
        .chain(training.is_stopped.then(|| STOPPED.to_owned()))
        .chain(warning)
        .collect()
}

/// A warning for a model with one member, whose knowledge uncertainty is always zero.
pub(crate) fn on_members(model: &dyn Model) -> Option<String> {
    let warning = "the model has one member, so its knowledge (epistemic) uncertainty is zero on every row; \
                   fit a model with more members (parameter n_members)";
    (model.n_members() == 1).then(|| warning.to_owned())
}

/// Why a categorical column is probably not meant as one, if so.
fn suspicion(levels: &[String], n_rows: usize) -> Option<String> {
    if !levels.is_empty() && levels.iter().all(|level| is_date(level)) {
        return Some("contains dates, which are treated as categories".to_owned());
    }
    let has_many_levels = n_rows >= MIN_ROWS && 2 * levels.len() > n_rows;
    has_many_levels.then(|| {
        format!(
            "has {} distinct texts in {n_rows} rows, each treated as a category",
            levels.len()
        )
    })
}

/// Whether a text begins with a date such as `2024-01-31`, `31.01.2024` or `1/31/2024`.
fn is_date(text: &str) -> bool {
    let day = text.trim().split([' ', 'T']).next().unwrap_or_default();
    ['-', '/', '.'].into_iter().any(|mark| {
        let parts: Vec<&str> = day.split(mark).collect();
        let is_number = |part: &&str| {
            (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let has_year = [0, 2]
            .iter()
            .any(|&at| parts.get(at).is_some_and(|part| part.len() == 4));
        parts.len() == 3 && has_year && parts.iter().all(is_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_recognised() {
        for text in [
            "2024-01-31",
            "31.1.2024",
            "1/31/2024 12:30",
            "2024-01-31T10:00:00Z",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in ["", "1.2.3", "2024", "10-20-30", "a-b-2024", "192.168.0.1"] {
            assert!(!is_date(text), "{text}");
        }
    }
}
