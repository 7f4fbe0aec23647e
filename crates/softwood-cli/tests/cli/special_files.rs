//! Pipes, devices and links as outputs and as models.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::Command;

use crate::folder::Folder;
use crate::{fitted, regression};

fn pipe(folder: &Folder, name: &str) {
    let made = Command::new("mkfifo").arg(folder.path(name)).status();
    assert!(made.unwrap().success());
}

#[test]
fn pipes_and_devices_are_not_replaced_by_outputs() {
    let folder = fitted(&regression(60), "y");
    pipe(&folder, "pipe");
    pipe(&folder, "pipe.csv");
    symlink("/dev/null", folder.path("null.csv")).unwrap();
    let model = folder
        .names()
        .into_iter()
        .find(|name| name.ends_with(".softwood"));
    let model = model.as_deref().unwrap();
    for args in [
        ["fit", "data.csv", "-t", "y", "-o", "pipe"],
        ["fit", "data.csv", "-t", "y", "-o", "null.csv"],
        [
            "predict",
            model,
            "data.csv",
            "--quantiles=0.5",
            "-o",
            "pipe.csv",
        ],
        [
            "predict",
            model,
            "data.csv",
            "--quantiles=0.5",
            "-o",
            "null.csv",
        ],
    ] {
        folder.assert_rejected(&args, &["not a regular file"]);
    }
    let kind = |name: &str| fs::symlink_metadata(folder.path(name)).unwrap().file_type();
    assert!(kind("pipe").is_fifo() && kind("pipe.csv").is_fifo());
    assert!(kind("null.csv").is_symlink());
}

#[test]
fn a_pipe_is_refused_as_a_model() {
    let folder = fitted(&regression(60), "y");
    pipe(&folder, "pipe");
    folder.assert_rejected(
        &["predict", "pipe", "data.csv"],
        &["pipe: not a regular file"],
    );
}

#[test]
fn models_and_tables_follow_links_and_keep_the_mode() {
    let folder = fitted(&regression(60), "y");
    let model = folder
        .names()
        .into_iter()
        .find(|name| name.ends_with(".softwood"));
    let model = model.unwrap();
    for name in ["secret.softwood", "secret.csv"] {
        folder.write(name, "earlier");
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(folder.path(name), mode).unwrap();
    }
    symlink("secret.softwood", folder.path("link.softwood")).unwrap();
    symlink("secret.csv", folder.path("link.csv")).unwrap();
    let fit = [
        "fit",
        "data.csv",
        "-t",
        "y",
        "--model",
        "tree",
        "-o",
        "link.softwood",
    ];
    assert_eq!(folder.run(&fit).code, 0);
    let predict = ["predict", &model, "data.csv", "-o", "link.csv"];
    assert_eq!(folder.run(&predict).code, 0);
    for (link, name) in [
        ("link.softwood", "secret.softwood"),
        ("link.csv", "secret.csv"),
    ] {
        assert!(
            fs::symlink_metadata(folder.path(link))
                .unwrap()
                .is_symlink()
        );
        assert_ne!(folder.bytes(name), b"earlier");
        let mode = fs::metadata(folder.path(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
