//! Ctrl-C while a model is fitted or predictions are written.

#![cfg(unix)]

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::{Folder, Ran};
use crate::regression;

#[test]
fn ctrl_c_stops_the_fit_and_no_file_is_written() {
    let folder = Folder::new();
    folder.write("data.csv", regression(500));
    let flags = [
        "-p",
        "n_epochs=1000000",
        "-p",
        "max_depth=3",
        "-p",
        "early_stopping=false",
    ];
    // a signal that arrives before the handler is installed ends the program at once: then wait
    // longer
    for wait in [500, 2000, 8000, 20_000] {
        let mut command = folder.command(&["fit", "data.csv", "--target", "y"]);
        let child = command
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let sent = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success(), "the fit ended before it could be stopped");
        let output = child.wait_with_output().unwrap();
        if output.status.code().is_some() {
            let ran = Ran::from(output);
            assert_eq!((ran.code, ran.out.as_str()), (130, ""));
            assert_eq!(ran.err, "stopped; nothing was written\n");
            assert_eq!(folder.names(), ["data.csv"]);
            return;
        }
    }
    panic!("the handler was never installed");
}

#[test]
fn ctrl_c_while_predictions_are_written_leaves_no_temporary_file() {
    let folder = Folder::new();
    folder.write("data.csv", regression(200));
    let fitted = folder.run(&["fit", "data.csv", "--target", "y", "--model", "tree"]);
    assert_eq!(fitted.code, 0, "{}", fitted.err);
    let before = folder.names();
    let model = before.iter().find(|name| name.ends_with(".softwood"));
    let model = model.unwrap().clone();
    folder.write("rows.csv", regression(20_000));
    // somewhere between the start and the end of the program
    for wait in [30, 100, 200, 300, 400, 600] {
        let mut command = folder.command(&["predict", &model, "rows.csv"]);
        let mut child = command
            .args(["--samples", "40", "-o", "out.csv"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        // a program that has ended already left nothing either
        let _ = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .stderr(Stdio::null())
            .status()
            .unwrap();
        child.wait().unwrap();
        let left: Vec<String> = (folder.names().into_iter())
            .filter(|name| name.starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
