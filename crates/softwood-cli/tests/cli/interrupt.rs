//! Ctrl-C while a model is fitted.

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
