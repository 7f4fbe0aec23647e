//! Damaged model files, and tables that do not match the model.

use crate::folder::Folder;
use crate::{classification, fitted, regression};

#[test]
fn truncated_and_damaged_model_files() {
    let folder = fitted(&regression(40), "y");
    let whole = folder.bytes("model.softwood");
    for length in [0, 1, 7, whole.len() / 2, whole.len() - 1] {
        folder.write("bad.softwood", &whole[..length]);
        folder.assert_rejected(&["predict", "bad.softwood", "data.csv"], &["bad.softwood"]);
    }
    let mut changed = whole;
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    folder.write("bad.softwood", changed);
    folder.assert_rejected(&["score", "bad.softwood", "data.csv"], &["bad.softwood"]);
}

#[test]
fn a_table_or_an_absent_file_as_model() {
    let folder = Folder::new();
    folder.write("data.csv", regression(10));
    folder.assert_rejected(&["predict", "data.csv", "data.csv"], &["data.csv", "model"]);
    folder.assert_rejected(
        &["predict", "nope.softwood", "data.csv"],
        &["nope.softwood"],
    );
    folder.assert_rejected(&["models", "data.csv"], &["data.csv", "model"]);
    folder.assert_rejected(
        &["models", "nope"],
        &["`nope`", "there are vst", "there is no file `nope`"],
    );
}

#[test]
fn missing_columns_and_text_in_numeric_columns_are_named() {
    let folder = fitted(&regression(40), "y");
    folder.write("new.csv", "a,y\n1,2\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv"],
        &["new.csv", "`colour`", "there are a, y"],
    );
    folder.write("new.csv", "a,colour\n1,red\nmany,red\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv"],
        &["new.csv", "`a`", "row 2", "`many`"],
    );
}

#[test]
fn scoring_needs_the_target_with_known_classes() {
    let folder = fitted(&classification(60), "kind");
    folder.write("new.csv", "a,b\n1,2\n");
    folder.assert_rejected(
        &["score", "model.softwood", "new.csv"],
        &["new.csv", "`kind`"],
    );
    folder.write("new.csv", "a,b,kind\n1,2,low\n3,4,odd\n");
    folder.assert_rejected(
        &["score", "model.softwood", "new.csv"],
        &["`kind`", "row 2", "`odd`", "high, low"],
    );
}

#[test]
fn output_paths_are_checked() {
    let folder = fitted(&regression(40), "y");
    let predict = |output| ["predict", "model.softwood", "data.csv", "-o", output];
    folder.assert_rejected(&predict("nowhere/p.csv"), &["`nowhere` does not exist"]);
    folder.assert_rejected(&predict("model.softwood"), &["overwrite"]);
    folder.assert_rejected(&predict("p.xlsx"), &["p.xlsx"]);
}

#[test]
fn kept_columns_must_not_have_the_name_of_a_prediction() {
    let folder = fitted(&regression(40), "y");
    folder.write("new.csv", "a,colour,mean\n1,red,3\n");
    folder.assert_rejected(
        &["predict", "model.softwood", "new.csv", "--keep"],
        &["`mean`", "--keep"],
    );
}
