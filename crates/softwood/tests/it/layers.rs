//! Module layers: a module imports only from its own layer or lower ones, and a family from no
//! other family.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers from low to high; the modules of a layer may use each other. A submodule may have a layer
/// of its own.
const LAYERS: &[&[&str]] = &[
    &[
        "error",
        "stop",
        "rng",
        "par",
        "params",
        "reserve",
        "suggestion",
    ],
    &["numerics"],
    &["data", "store"],
    &["predictive", "likelihood", "score"],
    // variational training names no tree
    &["inference"],
    &["gaussian_process"],
    &["extrapolation"],
    &["trees"],
    &["recurrent"],
    &["boosting"],
    &["soft"],
    &["explain::tree_export"],
    &["observer", "model", "fit", "distribution"],
    &["variational"],
    &["models"],
    &["evaluate"],
    &["explain"],
    &["decide"],
];

/// Module names that do not say what the module holds.
const VAGUE_NAMES: &[&str] = &[
    "utils", "util", "helpers", "helper", "common", "misc", "base", "core",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The module path of a file in `src`.
fn modules(file: &Path) -> Vec<String> {
    let below = file.strip_prefix(source()).unwrap().with_extension("");
    below
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect()
}

/// The layer of a module path: that of its longest prefix in [`LAYERS`].
fn layer(path: &[String]) -> usize {
    let named = |length: usize| {
        let name = path.get(..length)?.join("::");
        LAYERS.iter().position(|layer| layer.contains(&&*name))
    };
    named(2)
        .or_else(|| named(1))
        .unwrap_or_else(|| panic!("the module `{}` is not in LAYERS", path.join("::")))
}

/// Paths after `crate::` in a source text, outside comments.
fn crate_paths(text: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or("");
        for rest in code.split("crate::").skip(1) {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
                .unwrap_or(rest.len());
            let parts = rest[..end].split("::").filter(|part| !part.is_empty());
            paths.push(parts.map(str::to_owned).collect());
        }
    }
    paths
}

/// The problem of an import, if it breaks a rule.
fn problem(from: &[String], to: &[String]) -> Option<String> {
    let (ours, theirs) = (from.first()?, to.first()?);
    if !theirs.starts_with(char::is_lowercase) || theirs.ends_with('!') {
        return None;
    }
    if layer(from) < layer(to) {
        return Some(format!(
            "`{ours}` uses `{theirs}`, which is in a higher layer"
        ));
    }
    // a family imports no other family; these modules are shared by all families
    let is_shared = |name: &str| matches!(name, "registry" | "file" | "mod");
    let is_family =
        |path: &[String]| path[0] == "models" && path.get(1).is_some_and(|name| !is_shared(name));
    let may_enter = from[0] != "models"
        || !is_family(from)
        || from.get(1) == to.get(1)
        || (from[1] == "gp_rnn_tree" && to.get(1).is_some_and(|name| name == "rnn_tree"));
    (is_family(to) && !may_enter)
        .then(|| format!("the family `{}` uses the family `{}`", from[1], to[1]))
}

#[test]
fn imports_come_from_lower_layers() {
    let mut broken = Vec::new();
    for file in rust_files(&source()) {
        let from = modules(&file);
        if from == ["lib"] {
            continue;
        }
        for to in crate_paths(&fs::read_to_string(&file).unwrap()) {
            if let Some(problem) = problem(&from, &to) {
                broken.push(format!("{}: {problem}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn module_names_say_what_the_module_holds() {
    for file in rust_files(&source()) {
        for module in modules(&file) {
            assert!(
                !VAGUE_NAMES.contains(&module.as_str()),
                "{}: name it after what it holds",
                file.display()
            );
        }
    }
}

#[test]
fn only_par_uses_rayon_and_only_numerics_is_unsafe() {
    for file in rust_files(&source()) {
        let from = modules(&file);
        let text = fs::read_to_string(&file).unwrap();
        let code = || {
            text.lines()
                .map(|line| line.split("//").next().unwrap_or(""))
        };
        if from != ["par"] {
            assert!(
                !code().any(|line| line.contains("rayon")),
                "{}: only par.rs may use rayon",
                file.display()
            );
        }
        if from[0] != "numerics" {
            assert!(
                !code().any(|line| line.contains("unsafe ")),
                "{}: only numerics/ may use unsafe",
                file.display()
            );
        }
    }
}

/// Instruction sets of kernels that compute: exponentials, divisions, matrix products.
const ARITHMETIC_TARGETS: &str =
    r#"(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2+fma"))]"#;
/// Instruction sets of kernels that load and store: histograms, leaf values, tree routing.
const MEMORY_TARGETS: &str = r#"(targets("x86_64+avx2+fma"))]"#;

/// Every instruction set is one more copy of a kernel to compile, so there are two lists of them.
/// NEON is part of every 64-bit ARM processor and needs no copy.
#[test]
fn kernels_are_compiled_for_few_instruction_sets() {
    for file in rust_files(&source()) {
        let text = fs::read_to_string(&file).unwrap();
        let targets = match modules(&file)[0].as_str() {
            "trees" | "boosting" => MEMORY_TARGETS,
            _ => ARITHMETIC_TARGETS,
        };
        for line in text.lines() {
            if let Some(rest) = line.trim_start().strip_prefix("#[multiversion") {
                assert_eq!(rest, targets, "{}", file.display());
            }
        }
    }
}

/// Family modules are private, so their page is shown in the documentation of the parameter type.
#[test]
fn parameter_types_include_the_page_of_their_family() {
    for entry in fs::read_dir(source().join("models")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = format!("{}.md", folder.file_name().unwrap().to_str().unwrap());
        let page = fs::read_to_string(folder.join(&name))
            .unwrap_or_else(|_| panic!("{} has no page {name}", folder.display()));
        for heading in ["Model", "When to use it", "Reference", "Example"] {
            assert!(
                page.contains(&format!("\n# {heading}\n")),
                "{name}: {heading}"
            );
        }
        let params = fs::read_to_string(folder.join("params.rs")).unwrap();
        let included = format!("#[doc = include_str!(\"{name}\")]");
        assert!(params.contains(&included), "{name} is not included");
    }
}

#[test]
fn wrong_imports_are_found() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    assert!(problem(&path("predictive::row"), &path("model::Model")).is_some());
    assert!(problem(&path("models::vst::train"), &path("models::tree::Tree")).is_some());
    assert!(problem(&path("models::vst::train"), &path("models::vst::Vst")).is_none());
    assert!(problem(&path("models::registry"), &path("models::vst::Vst")).is_none());
    assert!(problem(&path("evaluate::run"), &path("score::prr")).is_none());
    assert!(problem(&path("inference::train"), &path("soft::layout")).is_some());
    assert!(problem(&path("inference::train"), &path("observer::Observer")).is_some());
    let found = crate_paths(
        "use crate::data::table::{Table};\n// crate::no::such\nlet x = crate::rng::Key(1);",
    );
    assert_eq!(found, [path("data::table"), path("rng::Key")]);
}

/// Names of the types that a source text declares, outside tests and traits.
fn type_names(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or("");
    let declared = code.lines().filter(|line| !line.starts_with(' '));
    let names = declared.filter_map(|line| {
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            rest.strip_prefix("(crate)")
                .or_else(|| rest.strip_prefix("(super)"))
                .unwrap_or(rest)
        });
        let rest = ["struct ", "enum ", "trait ", "type "]
            .iter()
            .find_map(|word| line.trim_start().strip_prefix(word))?;
        let end = rest.find(|c: char| !c.is_alphanumeric())?;
        Some(rest[..end].to_owned())
    });
    names.collect()
}

/// A search for a type finds one declaration.
#[test]
fn a_type_name_is_used_once_in_the_workspace() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        for file in rust_files(&source) {
            let names = type_names(&fs::read_to_string(&file).unwrap());
            found.extend(
                names
                    .into_iter()
                    .map(|name| (name, file.display().to_string())),
            );
        }
    }
    found.sort();
    assert!(found.len() > 100, "no types were found");
    let twice: Vec<_> = found
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .collect();
    assert!(twice.is_empty(), "{twice:#?}");
    assert_eq!(
        type_names("pub(crate) enum A {\n    type B = C;\nstruct D;"),
        ["A", "D"]
    );
}
