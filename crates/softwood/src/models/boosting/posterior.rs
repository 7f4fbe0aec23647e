//! The fitted boosted model: chains of trees, the members read off them, and their distributions.

use serde_json::{Value, json};

use crate::boost::chain::Chain;
use crate::data::binned::{Cuts, guess};
use crate::data::schema::{FieldKind, Schema};
use crate::data::standardise::Standard;
use crate::data::table::Rows;
use crate::error::{Error, Result};
use crate::models::boosting::codec::{decode, encode};
use crate::models::boosting::head::Law;
use crate::models::boosting::recipe::Members;
use crate::posterior::{Posterior, Training};
use crate::predictive::block::{Block, Head};
use crate::store::record::Record;

/// A fitted boosted model.
#[derive(Debug, Clone)]
pub struct Boosted {
    family: &'static str,
    schema: Schema,
    params: Value,
    training: Training,
    standard: Standard,
    law: Law,
    cuts: Cuts,
    members: Members,
    chains: Vec<Chain>,
    /// Trees after which each member is read off, by chain.
    snapshots: Vec<Vec<usize>>,
}

impl Boosted {
    pub(super) fn new(
        family: &'static str,
        (schema, params, training): (Schema, Value, Training),
        (standard, law, cuts): (Standard, Law, Cuts),
        members: Members,
        chains: Vec<Chain>,
    ) -> Self {
        let snapshots = chains.iter().enumerate();
        let snapshots = snapshots
            .map(|(at, chain)| members.snapshots(chain.trees.len(), at))
            .collect();
        Self {
            family,
            schema,
            params,
            training,
            standard,
            law,
            cuts,
            members,
            chains,
            snapshots,
        }
    }

    /// Builds the model from its record.
    ///
    /// # Errors
    /// When the record is incomplete or contradicts itself.
    pub(crate) fn from_record(family: &'static str, record: &Record) -> Result<Self> {
        let schema: Schema = record.part("schema")?;
        let kinds: Vec<Option<usize>> = schema
            .fields
            .iter()
            .map(|field| match &field.kind {
                FieldKind::Numeric => None,
                FieldKind::Categorical { levels } => Some(levels.len()),
            })
            .collect();
        let (cuts, law, members): (Cuts, Law, Members) = (
            record.part("cuts")?,
            record.part("law")?,
            record.part("members")?,
        );
        cuts.check(&kinds)?;
        let standard: Standard = record.part("standard")?;
        let classes = schema.classes().map(<[String]>::len);
        let is_sound = match law {
            Law::Normal { floor } => classes.is_none() && floor > 0.0,
            Law::Squared { sd } => classes.is_none() && sd > 0.0,
            Law::Binary => classes == Some(2),
            Law::Multiclass { classes: n } => classes == Some(n),
        };
        let n = members.chains;
        let is_sound = is_sound
            && (1..=members.total).contains(&n)
            && members.total <= 1000
            && (0.0..1.0).contains(&members.burn_in)
            && standard.shift.is_finite()
            && standard.scale > 0.0;
        if !is_sound {
            return Err(Error::Format(
                "law, members and schema do not fit together".to_owned(),
            ));
        }
        let chains = (0..n).map(|at| decode(record, at, law.n_outputs(), &cuts));
        let chains = chains.collect::<Result<_>>()?;
        Ok(Self::new(
            family,
            (schema, record.part("params")?, record.part("training")?),
            (standard, law, cuts),
            members,
            chains,
        ))
    }

    fn fill(&self, out: &mut Block, member: usize, output: usize, first: usize, values: &[f64]) {
        match self.law {
            Law::Normal { .. } if output == 1 => {
                let at = out.at(member, 0) + first;
                for (sd, &raw) in out.sd[at..].iter_mut().zip(values) {
                    *sd = self.law.sd(raw);
                }
            }
            Law::Normal { .. } | Law::Squared { .. } => {
                let at = out.at(member, 0) + first;
                out.mean[at..at + values.len()].copy_from_slice(values);
                out.weight[at..at + values.len()].fill(1.0);
                if let Law::Squared { sd } = self.law {
                    out.sd[at..at + values.len()].fill(sd);
                }
            }
            Law::Binary => {
                let (no, yes) = (out.at(member, 0) + first, out.at(member, 1) + first);
                for (at, &logit) in values.iter().enumerate() {
                    let p = 1.0 / (1.0 + (-logit).exp());
                    out.weight[no + at] = 1.0 - p;
                    out.weight[yes + at] = p;
                }
            }
            Law::Multiclass { .. } => {
                let at = out.at(member, output) + first;
                out.weight[at..at + values.len()].copy_from_slice(values);
            }
        }
    }
}

impl Posterior for Boosted {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn head(&self) -> Head {
        match self.schema.classes() {
            Some(classes) => Head::Categorical {
                classes: classes.len(),
            },
            None => Head::Normal { components: 1 },
        }
    }

    fn n_members(&self) -> usize {
        self.members.total
    }

    fn members(&self, rows: &Rows<'_>, out: &mut Block) -> Result<()> {
        out.shift = self.standard.shift;
        out.scale = self.standard.scale;
        let mut binned = self.cuts.bin_range(rows);
        let unseen = self.cuts.unseen(rows);
        let mut member = 0;
        for (at, (chain, snapshots)) in self.chains.iter().zip(&self.snapshots).enumerate() {
            guess(&unseen, at, &mut binned);
            chain.forward(&binned, snapshots, |snapshot, output, first, values| {
                self.fill(out, member + snapshot, output, first, values);
            });
            member += snapshots.len();
        }
        out.pad();
        if let Law::Multiclass { classes } = self.law {
            softmax(out, classes);
        }
        Ok(())
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn record(&self) -> Record {
        let mut arrays = Vec::new();
        for (at, chain) in self.chains.iter().enumerate() {
            arrays.extend(encode(chain, at));
        }
        Record {
            family: self.family.to_owned(),
            meta: json!({
                "schema": self.schema, "params": self.params, "training": self.training, "standard": self.standard,
                "law": self.law, "cuts": self.cuts, "members": self.members,
            }),
            arrays,
        }
    }
}

/// Logits to probabilities, in place.
fn softmax(out: &mut Block, classes: usize) {
    let stride = out.stride;
    for member in out.weight.chunks_exact_mut(classes * stride) {
        for row in 0..stride {
            let of = |class: usize| class * stride + row;
            let largest = (0..classes)
                .map(|class| member[of(class)])
                .fold(f64::NEG_INFINITY, f64::max);
            let mut total = 0.0;
            for class in 0..classes {
                member[of(class)] = (member[of(class)] - largest).exp();
                total += member[of(class)];
            }
            for class in 0..classes {
                member[of(class)] /= total;
            }
        }
    }
}
