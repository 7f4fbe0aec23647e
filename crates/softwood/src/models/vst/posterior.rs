//! The fitted variational soft tree.

use serde_json::json;

use crate::data::schema::Schema;
use crate::data::table::Rows;
use crate::error::Result;
use crate::posterior::{Posterior, Training};
use crate::predictive::block::{Block, Head};
use crate::store::record::Record;

/// A fitted variational soft tree.
#[derive(Debug, Clone)]
pub struct Vst {
    pub(super) schema: Schema,
    pub(super) training: Training,
    pub(super) shift: f64,
    pub(super) scale: f64,
}

impl Vst {
    pub(crate) fn from_record(record: &Record) -> Result<Self> {
        Ok(Self {
            schema: record.part("schema")?,
            training: record.part("training")?,
            shift: record.part("shift")?,
            scale: record.part("scale")?,
        })
    }
}

impl Posterior for Vst {
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn head(&self) -> Head {
        match self.schema.classes() {
            None => Head::Normal { components: 1 },
            Some(classes) => Head::Categorical {
                classes: classes.len(),
            },
        }
    }
    fn n_members(&self) -> usize {
        2
    }
    fn members(&self, _: &Rows<'_>, out: &mut Block) -> Result<()> {
        let share = 1.0 / out.n_components() as f64;
        out.weight.fill(share);
        out.sd.fill(1.0);
        out.shift = self.shift;
        out.scale = self.scale;
        Ok(())
    }
    fn training(&self) -> &Training {
        &self.training
    }
    fn record(&self) -> Record {
        let meta = json!({"schema": self.schema, "training": self.training, "shift": self.shift, "scale": self.scale});
        Record {
            family: "vst".to_owned(),
            meta,
            arrays: Vec::new(),
        }
    }
}
