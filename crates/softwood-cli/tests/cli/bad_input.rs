//! Tables and flags that cannot be used: each has its message and exit code 2, and leaves nothing behind.

use std::fs;
use std::path::Path;

use softwood::{Column, Table};

use crate::fold::Folder;
use crate::regression;

/// Fits a table that must be refused with all of `parts` in the message.
fn refuse_table(table: &str, parts: &[&str]) {
    let folder = Folder::new();
    folder.write("bad.csv", table);
    let mut all = vec!["bad.csv"];
    all.extend(parts);
    folder.refused(&["fit", "bad.csv", "--target", "y"], &all);
}

/// Fits a good table with further flags that must be refused.
fn refuse_flags(flags: &[&str], parts: &[&str]) {
    let folder = Folder::new();
    folder.write("good.csv", regression(20));
    let mut args = vec!["fit", "good.csv", "--target", "y"];
    args.extend(flags);
    folder.refused(&args, parts);
}

#[test]
fn no_such_target_column() {
    refuse_table("a,b\n1,2\n2,3\n", &["`y`", "there are a, b"]);
}

#[test]
fn no_such_named_columns() {
    for flag in ["--categorical", "--numeric", "--ignore", "--weight"] {
        refuse_flags(
            &[flag, "nope"],
            &["good.csv", "`nope`", "there are a, colour, y"],
        );
    }
}

#[test]
fn empty_file() {
    refuse_table("", &["empty"]);
}

#[test]
fn header_without_rows() {
    refuse_table("a,y\n", &["no rows"]);
}

#[test]
fn ragged_row() {
    refuse_table("a,y\n1,2\n3,4,5\n6,7\n", &["row 2"]);
}

#[test]
fn text_in_a_numeric_column() {
    let folder = Folder::new();
    folder.write("bad.csv", "a,y\n1,2\nn/b,3\n5,6\n");
    let args = ["fit", "bad.csv", "--target", "y", "--numeric", "a"];
    folder.refused(&args, &["bad.csv", "`a`", "row 2", "`n/b`", "not a number"]);
}

#[test]
fn text_in_a_regression_target() {
    let folder = Folder::new();
    folder.write("bad.csv", "a,y\n1,2\n2,many\n5,6\n");
    let args = ["fit", "bad.csv", "--target", "y", "--task", "regression"];
    folder.refused(
        &args,
        &["bad.csv", "`y`", "row 2", "`many`", "not a number"],
    );
}

#[test]
fn infinities() {
    refuse_table("a,y\n1,2\n2,3\ninf,4\n", &["`a`", "row 3", "finite"]);
}

#[test]
fn missing_target_cell() {
    refuse_table("a,y\n1,2\n2,\n3,4\n", &["`y`", "row 2", "missing"]);
}

#[test]
fn constant_target() {
    refuse_table("a,y\n1,2\n2,2\n3,2\n", &["`y`", "equal"]);
}

#[test]
fn too_few_rows() {
    refuse_table("a,y\n1,2\n", &["at least 2 rows"]);
}

#[test]
fn no_features() {
    refuse_table("y\n1\n2\n3\n", &["no feature columns"]);
}

#[test]
fn duplicate_names() {
    refuse_table("a,a,y\n1,2,3\n4,5,6\n", &["`a`", "twice"]);
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
        folder.refused(&["fit", "bad.parquet", "--target", "y"], &["bad.parquet"]);
    }
}

#[test]
fn not_a_parquet_file() {
    let folder = Folder::new();
    folder.write("bad.parquet", regression(10));
    folder.refused(&["fit", "bad.parquet", "--target", "y"], &["bad.parquet"]);
}

#[test]
fn directory_as_table() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data.csv")).unwrap();
    folder.refused(
        &["fit", "data.csv", "--target", "y"],
        &["data.csv", "directory"],
    );
}

#[test]
fn absent_file() {
    Folder::new().refused(&["fit", "nope.csv", "--target", "y"], &["nope.csv"]);
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
    folder.refused(
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
    folder.refused(&args, &["closed/m.softwood", "ermission"]);
}

/// The superuser reads and writes what is closed to others: there is nothing to test for it.
fn is_allowed_everything(closed: &Path) -> bool {
    let allowed = fs::File::open(closed).is_ok();
    if allowed {
        eprintln!("skipped: this user may read a file of mode 000");
    }
    allowed
}

#[test]
fn output_folder_that_does_not_exist() {
    refuse_flags(
        &["-o", "nowhere/m.softwood"],
        &["nowhere/m.softwood", "`nowhere` does not exist"],
    );
}

#[test]
fn output_that_is_a_folder_or_an_input() {
    refuse_flags(&["-o", "."], &["directory"]);
    refuse_flags(&["-o", "good.csv"], &["good.csv", "overwrite"]);
    refuse_flags(&["-o", "-"], &["goes to a file"]);
}

#[test]
fn unknown_model() {
    refuse_flags(&["--model", "vts"], &["`vts`", "there are vst"]);
}

#[test]
fn unknown_parameter() {
    refuse_flags(&["-p", "dpeth=3"], &["`dpeth`", "depth"]);
}

#[test]
fn parameters_out_of_range_are_all_named() {
    refuse_flags(
        &["-p", "depth=99", "-p", "n_members=0"],
        &["`depth` = 99", "from 0 to 8", "`n_members` = 0", "from 1"],
    );
}

#[test]
fn flags_of_the_wrong_form() {
    refuse_flags(&["-p", "depth"], &["KEY=VALUE"]);
    refuse_flags(&["--threads", "100000"], &["--threads", "1024"]);
    refuse_flags(&["--seed", "-1"], &["-1"]);
    refuse_flags(
        &["--delimiter", "ab"],
        &["--delimiter", "one ASCII character"],
    );
    refuse_flags(
        &["--task", "ranking"],
        &["--task", "regression", "classification"],
    );
}

#[test]
fn configuration_files() {
    let folder = Folder::new();
    folder.write("good.csv", regression(20));
    let args = ["fit", "good.csv", "--config", "c.toml"];
    folder.refused(&args, &["c.toml"]);
    folder.write("c.toml", "target = \"y\"\nmodle = \"vst\"\n");
    folder.refused(&args, &["c.toml", "line 2", "`modle`"]);
    folder.write("c.toml", "model = \"vst\"\n");
    folder.refused(&args, &["no target"]);
    folder.write("c.toml", "target = \"y\"\n[params]\ndepth = 99\n");
    folder.refused(&args, &["`depth` = 99"]);
}

#[test]
fn protocols() {
    let folder = Folder::new();
    folder.write("good.csv", regression(20));
    for protocol in ["nonsense", "cv:1", "holdout:2", "cv:1000"] {
        folder.refused(
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
    folder.refused(&args, &["nope.csv"]);
}
