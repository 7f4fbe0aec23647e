//! What a user should know of a table that can be fitted, but hardly as it was meant, and of a model that cannot say what
//! it does not know.

use softwood::{Dataset, FieldKind, Model, Training};

/// Rows below which a category a row says nothing.
const MIN_ROWS: usize = 20;

/// One sentence for each text column that looks like identifiers or dates, and what training warns of.
pub(crate) fn of(data: &Dataset, training: &Training) -> Vec<String> {
    let members = training.members.as_ref();
    let warning = members.and_then(|members| members.warning.clone());
    let fields = data.schema().fields.iter();
    fields
        .filter_map(|field| match &field.kind {
            FieldKind::Numeric => None,
            FieldKind::Categorical { levels } => {
                let what = oddity(levels, data.n_rows())?;
                Some(format!(
                    "column `{0}` {what}; if that is not meant, turn it into numbers or leave it out (--ignore {0})",
                    field.name
                ))
            }
        })
        .chain(warning)
        .collect()
}

/// A sentence for a model whose knowledge uncertainty says nothing.
pub(crate) fn on_members(posterior: &dyn Model) -> Option<String> {
    let alone = "the model has one member, so that its knowledge uncertainty is zero on every row; fit with more members";
    (posterior.n_members() == 1).then(|| alone.to_owned())
}

fn oddity(levels: &[String], n_rows: usize) -> Option<String> {
    if !levels.is_empty() && levels.iter().all(|level| is_date(level)) {
        return Some("holds dates, which are taken as categories".to_owned());
    }
    let is_odd = n_rows >= MIN_ROWS && 2 * levels.len() > n_rows;
    is_odd.then(|| {
        format!(
            "has {} different texts in {n_rows} rows, each taken as a category",
            levels.len()
        )
    })
}

/// Whether a text begins as `2024-01-31`, `31.01.2024` or `1/31/2024` do.
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
    fn dates_are_known_by_their_form() {
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
