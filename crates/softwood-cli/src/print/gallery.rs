//! The page of a gallery of figures.

use std::fmt::Write as _;

use crate::commands::reproduce::{Figure, GalleryEntry, paper_citation};

const HEAD: &str = "\
# Figures of five papers

Pictures in the manner of the figures of the papers, drawn by our models: not copies of them. `softwood reproduce` lists all
figures; `softwood reproduce figures -o DIR` draws them, each with its command below alone.
";

/// The page as Markdown; pictures are beside it.
pub(crate) fn markdown(entries: &[GalleryEntry]) -> String {
    let mut out = HEAD.to_owned();
    for entry in entries {
        if let Some(figure) = Figure::named(&entry.name) {
            out += &section(figure, entry);
        }
    }
    out
}

fn section(figure: &Figure, entry: &GalleryEntry) -> String {
    let (name, title) = (figure.name, figure.heading());
    let mut out = format!(
        "\n## {title}\n\n![{title}]({name}.svg)\n\n{}",
        figure.caption
    );
    if let Some(reading) = figure.reading {
        let _ = write!(out, " {reading}");
    }
    let quick = if entry.quick { " --quick" } else { "" };
    let seed = match entry.seed {
        0 => String::new(),
        seed => format!(" --seed {seed}"),
    };
    let data = if figure.data.is_some() {
        " --data DIR"
    } else {
        ""
    };
    let citation = paper_citation(figure.paper);
    let _ = write!(
        out,
        "\n\n- {citation}, {}\n- `softwood reproduce {name}{quick}{seed}{data} -o DIR`\n",
        figure.place
    );
    let _ = writeln!(
        out,
        "- softwood {}, {}, seed {}; {}, {:.0} s",
        entry.version,
        entry.date,
        entry.seed,
        entry.machine,
        entry.seconds.max(1.0)
    );
    out
}
