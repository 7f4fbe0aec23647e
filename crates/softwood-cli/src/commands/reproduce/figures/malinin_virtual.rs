//! Knowledge uncertainty on the spirals of Malinin et al. 2021: a true ensemble of `sglb`, a virtual
//! ensemble of one chain, and a random forest.

use softwood::{Distribution, Result};

use super::malinin_spiral::{SpiralRows, map_cells, sglb};
use super::uncertainty_maps::UncertaintyMap;
use super::{Figure, FigureRun, spec};
use crate::plot::Scene;

pub(crate) const FIGURE: Figure = Figure {
    name: "malinin-virtual",
    paper: "malinin",
    place: "figures 2 to 4",
    title: "knowledge uncertainty of true and virtual ensembles on three spirals",
    caption: "All three are uncertain around the spirals, where there are no rows. Between the arms the true ensemble \
              is a little uncertain; the virtual ensemble, whose members are parts of one chain of trees, is hardly so.",
    reading: Some(
        "The comparison with a virtual ensemble and a forest on these rows is our choice.",
    ),
    data: None,
    draw,
};

/// Random stream of the fits.
const FIT: u64 = 2;

fn draw(figure: &Figure, run: &FigureRun<'_>) -> Result<Scene> {
    let rows = SpiralRows::draw(run)?;
    let trees = run.choose("100", "1000");
    let forest = [
        ("n_estimators", trees),
        ("n_members", run.choose("4", "10")),
    ];
    let specs = [
        ("sglb, one chain per member", sglb(run, &[])?),
        (
            "sglb, virtual ensemble",
            sglb(run, &[("virtual_ensemble", "true")])?,
        ),
        ("forest", spec("forest", &forest)?),
    ];
    let cells = map_cells()?;
    let mut maps = Vec::new();
    for (title, spec) in &specs {
        let model = run.fit(spec, &rows.data, run.key(FIT))?;
        let parts = Distribution::new(model.as_ref(), &cells, run.pool)?.uncertainty()?;
        maps.push(UncertaintyMap {
            title: (*title).to_owned(),
            values: parts.knowledge,
        });
    }
    Ok(rows.maps(figure, maps))
}
