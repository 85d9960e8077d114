//! `lower`, `upper`: ASCII letters only.

use super::{ConverterRow, Sample, TEXT, text};

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["lower"],
        apply: |_, sample, txn| {
            let from = text(sample)?;
            if !from.iter().any(u8::is_ascii_uppercase) {
                return Some(sample);
            }
            let to = txn.arena.alloc_slice_copy(from);
            to.make_ascii_lowercase();
            Some(Sample::Str(to))
        },
        ..TEXT
    },
    ConverterRow {
        names: &["upper"],
        apply: |_, sample, txn| {
            let from = text(sample)?;
            if !from.iter().any(u8::is_ascii_lowercase) {
                return Some(sample);
            }
            let to = txn.arena.alloc_slice_copy(from);
            to.make_ascii_uppercase();
            Some(Sample::Str(to))
        },
        ..TEXT
    },
];
