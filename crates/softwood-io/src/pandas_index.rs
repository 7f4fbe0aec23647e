//! Finds the columns in which pandas stored the index of a frame. It writes their names into the
//! metadata of Parquet and Arrow files.

use arrow_schema::Schema;
use serde_json::Value;

/// Columns of the schema that hold the index of a pandas frame.
pub(crate) fn index_columns(schema: &Schema) -> Vec<String> {
    let metadata = schema.metadata().get("pandas");
    let parsed: Option<Value> = metadata.and_then(|text| serde_json::from_str(text).ok());
    let named = parsed
        .as_ref()
        .and_then(|value| value["index_columns"].as_array());
    let is_named = |name: &str| {
        named.is_some_and(|entries| entries.iter().any(|entry| entry.as_str() == Some(name)))
    };
    let names = schema.fields().iter().map(|field| field.name());
    let found: Vec<String> = names
        .filter(|name| is_named(name) || is_unnamed_level(name))
        .cloned()
        .collect();
    found
}

/// Whether the name is one that pandas gives to an index level without a name, as
/// `__index_level_0__`; other programs keep it when they copy a file without its metadata.
fn is_unnamed_level(name: &str) -> bool {
    let level = name.strip_prefix("__index_level_");
    let level = level.and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field};

    fn found(names: &[&str], pandas: Option<&str>) -> Vec<String> {
        let field = |name: &&str| Field::new(*name, DataType::Int64, true);
        let schema = Schema::new(names.iter().map(field).collect::<Vec<_>>());
        let metadata = pandas.map(|text| ("pandas".to_owned(), text.to_owned()));
        index_columns(&schema.with_metadata(metadata.into_iter().collect()))
    }

    #[test]
    fn named_and_unnamed_levels_are_found() {
        let names = ["a", "id", "__index_level_1__"];
        let pandas = r#"{"index_columns": ["id", "__index_level_1__"], "columns": []}"#;
        assert_eq!(found(&names, Some(pandas)), names[1..]);
        assert_eq!(found(&names, None), names[2..]);
    }

    #[test]
    fn an_index_that_is_not_stored_and_damaged_metadata_name_no_column() {
        let range = r#"{"index_columns": [{"kind": "range", "name": "a", "start": 0}]}"#;
        for text in [range, "{", "[]", "7", r#"{"index_columns": "a"}"#, "[[[["] {
            assert!(
                found(&["a", "__index_level___"], Some(text)).is_empty(),
                "{text}"
            );
        }
    }
}
