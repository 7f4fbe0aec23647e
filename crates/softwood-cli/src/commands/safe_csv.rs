//! Texts that a spreadsheet would run as formulas, made harmless for CSV and TSV (`--safe-csv`).

use std::path::Path;

use softwood::data::Values;
use softwood::{Column, Result, Table};

use crate::commands::path_checks::is_stream;

/// First characters of a text that spreadsheets take for a formula; the last four are full-width
/// forms of the first.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Whether the file is written as CSV or TSV, compressed or not.
pub(crate) fn is_text_format(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    is_stream(path) || [".csv", ".tsv"].iter().any(|suffix| stem.ends_with(suffix))
}

/// The table with `'` before every column name and category that would run as a formula.
///
/// # Errors
/// When a column name is then the same as another one.
pub(crate) fn without_formulas(table: &Table) -> Result<Table> {
    let column = |column: &Column| {
        let name = harmless(&column.name);
        match &column.values {
            Values::Categorical { codes, levels } if levels.iter().any(|text| is_formula(text)) => {
                let text = |code: &u32| levels.get(*code as usize).map(|text| harmless(text));
                let texts: Vec<Option<String>> = codes.iter().map(text).collect();
                Column::categorical(name, &texts)
            }
            values => Column {
                name,
                values: values.clone(),
            },
        }
    };
    Table::new(table.columns().iter().map(column).collect())
}

fn harmless(text: &str) -> String {
    if is_formula(text) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// Whether a spreadsheet would run the text; a plain number such as `-1` only looks like it.
fn is_formula(text: &str) -> bool {
    text.starts_with(FORMULA_STARTS) && !text.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_quoted_and_numbers_are_not() {
        for text in [
            "=1+1", "+cmd", "-a", "@SUM(A1)", "\t=1", "\r=1", "－1", "-inf",
        ] {
            assert_eq!(harmless(text), format!("'{text}"));
        }
        for text in ["", "a=b", "-1.5", "+2", "-1e3", "'=1", "p_-1"] {
            assert_eq!(harmless(text), text);
        }
    }

    #[test]
    fn only_names_and_categories_change() {
        let table = Table::new(vec![
            Column::categorical("=x", &[Some("=1"), None, Some("-1"), Some("b")]),
            Column::numeric("a", vec![-1.0, 2.0, f64::NEG_INFINITY.max(-3.0), 0.5]),
        ])
        .unwrap();
        let safe = without_formulas(&table).unwrap();
        let wanted = [Some("'=1"), None, Some("-1"), Some("b")];
        assert_eq!(safe.columns()[0], Column::categorical("'=x", &wanted));
        assert_eq!(safe.columns()[1], table.columns()[1]);
    }

    #[test]
    fn text_formats_are_recognised() {
        for name in ["-", "a.csv", "a.TSV.gz"] {
            assert!(is_text_format(Path::new(name)));
        }
        assert!(!is_text_format(Path::new("a.parquet")));
    }
}
