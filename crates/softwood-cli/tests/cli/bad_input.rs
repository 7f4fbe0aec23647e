//! Invalid tables and flags: each is reported with a message and exit code 2, and no file is
//! written.

use std::fs;
use std::path::Path;

use softwood::{Column, Table};

use crate::folder::Folder;
use crate::regression;

/// Checks that fitting a table fails with a message that contains all of `parts`.
fn assert_table_rejected(table: &str, parts: &[&str]) {
    let folder = Folder::new();
    folder.write("bad.csv", table);
    let mut all = vec!["bad.csv"];
    all.extend(parts);
    folder.assert_rejected(&["fit", "bad.csv", "--target", "y"], &all);
}

/// Checks that fitting a valid table with further flags fails.
fn assert_flags_rejected(flags: &[&str], parts: &[&str]) {
    let folder = Folder::new();
    folder.write("good.csv", regression(20));
    let mut args = vec!["fit", "good.csv", "--target", "y"];
    args.extend(flags);
    folder.assert_rejected(&args, parts);
}

#[test]
fn no_such_target_column() {
    assert_table_rejected("a,b\n1,2\n2,3\n", &["`y`", "there are a, b"]);
}

#[test]
fn no_such_named_columns() {
    for flag in ["--categorical", "--numeric", "--ignore", "--weight"] {
        assert_flags_rejected(
            &[flag, "nope"],
            &["good.csv", "`nope`", "there are a, colour, y"],
        );
    }
}

#[test]
fn empty_file() {
    assert_table_rejected("", &["empty"]);
}

#[test]
fn header_without_rows() {
    assert_table_rejected("a,y\n", &["no rows"]);
}

#[test]
fn ragged_row() {
    assert_table_rejected("a,y\n1,2\n3,4,5\n6,7\n", &["row 2"]);
}

#[test]
fn text_in_a_numeric_column() {
    let folder = Folder::new();
    folder.write("bad.csv", "a,y\n1,2\nn/b,3\n5,6\n");
    let args = ["fit", "bad.csv", "--target", "y", "--numeric", "a"];
    folder.assert_rejected(&args, &["bad.csv", "`a`", "row 2", "`n/b`", "not a number"]);
}

#[test]
fn text_in_a_regression_target() {
    let folder = Folder::new();
    folder.write("bad.csv", "a,y\n1,2\n2,many\n5,6\n");
    let args = ["fit", "bad.csv", "--target", "y", "--task", "regression"];
    folder.assert_rejected(
        &args,
        &["bad.csv", "`y`", "row 2", "`many`", "not a number"],
    );
}

#[test]
fn infinities() {
    assert_table_rejected("a,y\n1,2\n2,3\ninf,4\n", &["`a`", "row 3", "finite"]);
}

#[test]
fn missing_target_cell() {
    assert_table_rejected("a,y\n1,2\n2,\n3,4\n", &["`y`", "row 2", "missing"]);
}

#[test]
fn constant_target() {
    assert_table_rejected("a,y\n1,2\n2,2\n3,2\n", &["`y`", "equal"]);
}

#[test]
fn too_few_rows() {
    assert_table_rejected("a,y\n1,2\n", &["at least 2 rows"]);
}

#[test]
fn no_features() {
    assert_table_rejected("y\n1\n2\n3\n", &["no feature columns"]);
}

#[test]
fn duplicate_names() {
    assert_table_rejected("a,a,y\n1,2,3\n4,5,6\n", &["`a`", "twice"]);
}

#[test]
fn truncated_parquet() {
    let folder = Folder::new();
    let numbers = |name: &str| Column::numeric(name, (0..100).map(f64::from).collect());
    let table = Table::new(vec![numbers("a"), numbers("y")]).unwrap();
    softwood_io::write_table(&folder.path("good.parquet"), &table).unwrap();
    let whole = folder.bytes("good.parquet");
    for length in [0, 3, whole.len() / 2, whole.len() - 1] {
        folder.write("bad.parquet", &whole[..length]);
        folder.assert_rejected(&["fit", "bad.parquet", "--target", "y"], &["bad.parquet"]);
    }
}

#[test]
fn not_a_parquet_file() {
    let folder = Folder::new();
    folder.write("bad.parquet", regression(10));
    folder.assert_rejected(&["fit", "bad.parquet", "--target", "y"], &["bad.parquet"]);
}

#[test]
fn directory_as_table() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data.csv")).unwrap();
    folder.assert_rejected(
        &["fit", "data.csv", "--target", "y"],
        &["data.csv", "directory"],
    );
}

#[test]
fn absent_file() {
    Folder::new().assert_rejected(&["fit", "nope.csv", "--target", "y"], &["nope.csv"]);
}

#[test]
#[cfg(unix)]
fn no_permission() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("closed.csv", regression(10));
    fs::set_permissions(folder.path("closed.csv"), fs::Permissions::from_mode(0o000)).unwrap();
    if is_allowed_everything(&folder.path("closed.csv")) {
        return;
    }
    folder.assert_rejected(
        &["fit", "closed.csv", "--target", "y"],
        &["closed.csv", "permission"],
    );
}

#[test]
#[cfg(unix)]
fn output_folder_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("good.csv", regression(10));
    fs::create_dir(folder.path("closed")).unwrap();
    fs::set_permissions(folder.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    folder.write("probe", "");
    fs::set_permissions(folder.path("probe"), fs::Permissions::from_mode(0o000)).unwrap();
    if is_allowed_everything(&folder.path("probe")) {
        return;
    }
    let args = [
        "fit",
        "good.csv",
        "--target",
        "y",
        "-o",
        "closed/m.softwood",
    ];
    folder.assert_rejected(&args, &["closed/m.softwood", "ermission"]);
}

/// Whether this user is not bound by file permissions, like the superuser; then there is nothing to
/// test.
fn is_allowed_everything(closed: &Path) -> bool {
    let allowed = fs::File::open(closed).is_ok();
    if allowed {
        eprintln!("skipped: this user may read a file of mode 000");
    }
    allowed
}

#[test]
fn output_folder_that_does_not_exist() {
    assert_flags_rejected(
        &["-o", "nowhere/m.softwood"],
        &["nowhere/m.softwood", "`nowhere` does not exist"],
    );
}

#[test]
fn output_that_is_a_folder_or_an_input() {
    assert_flags_rejected(&["-o", "."], &["directory"]);
    assert_flags_rejected(&["-o", "good.csv"], &["good.csv", "overwrite"]);
    assert_flags_rejected(&["-o", "-"], &["standard output", "give a file name"]);
}

#[test]
fn unknown_model() {
    assert_flags_rejected(&["--model", "vts"], &["`vts`", "there are vst"]);
}

#[test]
fn unknown_parameter() {
    assert_flags_rejected(&["-p", "dpeth=3"], &["`dpeth`", "max_depth"]);
}

#[test]
fn parameters_out_of_range_are_all_named() {
    assert_flags_rejected(
        &["-p", "max_depth=99", "-p", "n_members=0"],
        &[
            "`max_depth` = 99",
            "from 0 to 8",
            "`n_members` = 0",
            "from 1",
        ],
    );
}

#[test]
fn flags_of_the_wrong_form() {
    assert_flags_rejected(&["-p", "depth"], &["KEY=VALUE"]);
    assert_flags_rejected(&["--threads", "100000"], &["--threads", "1024"]);
    assert_flags_rejected(&["--seed", "-1"], &["-1"]);
    assert_flags_rejected(
        &["--delimiter", "ab"],
        &["--delimiter", "one ASCII character"],
    );
    assert_flags_rejected(
        &["--task", "ranking"],
        &["--task", "regression", "classification"],
    );
}

#[test]
fn configuration_files() {
    let folder = Folder::new();
    folder.write("good.csv", regression(20));
    let args = ["fit", "good.csv", "--config", "c.toml"];
    folder.assert_rejected(&args, &["c.toml"]);
    folder.write("c.toml", "target = \"y\"\nmodle = \"vst\"\n");
    folder.assert_rejected(&args, &["c.toml", "line 2", "`modle`"]);
    folder.write("c.toml", "model = \"vst\"\n");
    folder.assert_rejected(&args, &["no target"]);
    folder.write("c.toml", "target = \"y\"\n[params]\nmax_depth = 99\n");
    folder.assert_rejected(&args, &["`max_depth` = 99"]);
}

#[test]
fn protocols() {
    let folder = Folder::new();
    folder.write("good.csv", regression(20));
    for protocol in ["nonsense", "cv:1", "holdout:2", "cv:1000"] {
        folder.assert_rejected(
            &[
                "evaluate",
                "good.csv",
                "--target",
                "y",
                "--protocol",
                protocol,
            ],
            &[],
        );
    }
    let args = [
        "evaluate",
        "good.csv",
        "--target",
        "y",
        "--protocol",
        "splits:nope.csv",
    ];
    folder.assert_rejected(&args, &["nope.csv"]);
}
