//! Model files and tables that do not fit each other.

use crate::fold::Folder;
use crate::{classification, fitted, regression};

#[test]
fn truncated_and_changed_model_files() {
    let folder = fitted(&regression(40), "y");
    let whole = folder.bytes("model.softwood");
    for length in [0, 1, 7, whole.len() / 2, whole.len() - 1] {
        folder.write("bad.softwood", &whole[..length]);
        folder.refused(&["predict", "bad.softwood", "data.csv"], &["bad.softwood"]);
    }
    let mut changed = whole;
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    folder.write("bad.softwood", changed);
    folder.refused(&["score", "bad.softwood", "data.csv"], &["bad.softwood"]);
}

#[test]
fn a_table_or_nothing_in_place_of_a_model() {
    let folder = Folder::new();
    folder.write("data.csv", regression(10));
    folder.refused(&["predict", "data.csv", "data.csv"], &["data.csv", "model"]);
    folder.refused(
        &["predict", "nope.softwood", "data.csv"],
        &["nope.softwood"],
    );
    folder.refused(&["models", "data.csv"], &["data.csv", "model"]);
    folder.refused(
        &["models", "nope"],
        &["`nope`", "there are vst", "no file of that name"],
    );
}

#[test]
fn missing_column_and_text_for_a_number_are_named() {
    let folder = fitted(&regression(40), "y");
    folder.write("new.csv", "a,y\n1,2\n");
    folder.refused(
        &["predict", "model.softwood", "new.csv"],
        &["new.csv", "`colour`", "there are a, y"],
    );
    folder.write("new.csv", "a,colour\n1,red\nmany,red\n");
    folder.refused(
        &["predict", "model.softwood", "new.csv"],
        &["new.csv", "`a`", "row 2", "`many`"],
    );
}

#[test]
fn scoring_needs_a_target_that_the_model_knows() {
    let folder = fitted(&classification(60), "kind");
    folder.write("new.csv", "a,b\n1,2\n");
    folder.refused(
        &["score", "model.softwood", "new.csv"],
        &["new.csv", "`kind`"],
    );
    folder.write("new.csv", "a,b,kind\n1,2,low\n3,4,odd\n");
    folder.refused(
        &["score", "model.softwood", "new.csv"],
        &["`kind`", "row 2", "`odd`", "high, low"],
    );
}

#[test]
fn outputs_are_checked() {
    let folder = fitted(&regression(40), "y");
    let predict = |output| ["predict", "model.softwood", "data.csv", "-o", output];
    folder.refused(&predict("nowhere/p.csv"), &["`nowhere` does not exist"]);
    folder.refused(&predict("model.softwood"), &["overwrite"]);
    folder.refused(&predict("p.xlsx"), &["p.xlsx"]);
}

#[test]
fn kept_columns_may_not_carry_a_prediction_s_name() {
    let folder = fitted(&regression(40), "y");
    folder.write("new.csv", "a,colour,mean\n1,red,3\n");
    folder.refused(
        &["predict", "model.softwood", "new.csv", "--keep"],
        &["`mean`", "--keep"],
    );
}
