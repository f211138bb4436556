//! Values of the numeric types and booleans.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array,
};
use arrow_buffer::NullBuffer;

use crate::counter::{below, log_uniform};
use crate::draws::Draws;
use crate::vocabulary::{NumberRange, Spread};

/// How the numbers of a column are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberSource {
    /// The index itself, so that values are unique.
    Index,
    /// The ordinal of a map's key.
    KeyOrdinal,
    /// A random number of a range.
    Range(NumberRange),
}

/// The digits of a decimal's unscaled value at most.
const MAX_DIGITS: u32 = 18;
const MAX_SHIFT: u32 = 10;

impl NumberSource {
    /// The integers before the scale is applied, and the scale.
    fn integers<'a>(self, draws: Draws<'a>) -> (Box<dyn ExactSizeIterator<Item = i64> + 'a>, u32) {
        match self {
            Self::Index => (Box::new(draws.indices.iter().map(|&index| (index & (u64::MAX >> 1)) as i64)), 0),
            Self::KeyOrdinal => (Box::new(draws.key_ordinals().map(|ordinal| ordinal as i64)), 0),
            Self::Range(NumberRange { low, spread: Spread::Below(bound), scale }) => {
                (Box::new(draws.bits(1).map(move |bits| low + below(bits, bound) as i64)), scale)
            }
            Self::Range(NumberRange { low, spread: Spread::Bits(bits), scale }) => {
                (Box::new(draws.bits(1).map(move |hash| low + log_uniform(hash, bits) as i64)), scale)
            }
        }
    }

    pub fn ints(self, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
        let (integers, scale) = self.integers(draws);
        let divisor = 10_i64.pow(scale);
        let values: Vec<i32> = integers.map(|integer| ((integer / divisor) & 0x7FFF_FFFF) as i32).collect();
        Arc::new(Int32Array::new(values.into(), nulls))
    }

    pub fn longs(self, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
        let (integers, scale) = self.integers(draws);
        let divisor = 10_i64.pow(scale);
        let values: Vec<i64> = integers.map(|integer| integer / divisor).collect();
        Arc::new(Int64Array::new(values.into(), nulls))
    }

    pub fn floats(self, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
        let values: Vec<f32> = self.quotients(draws).map(|value| value as f32).collect();
        Arc::new(Float32Array::new(values.into(), nulls))
    }

    pub fn doubles(self, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
        let values: Vec<f64> = self.quotients(draws).collect();
        Arc::new(Float64Array::new(values.into(), nulls))
    }

    /// One division of two numbers that a double holds exactly: the same on every machine.
    fn quotients<'a>(self, draws: Draws<'a>) -> impl ExactSizeIterator<Item = f64> + 'a {
        let (integers, scale) = self.integers(draws);
        let divisor = 10_f64.powi(scale as i32);
        integers.map(move |integer| integer as f64 / divisor)
    }

    pub fn decimals(self, draws: Draws<'_>, nulls: Option<NullBuffer>, precision: u8, scale: i8) -> ArrayRef {
        let (integers, from) = self.integers(draws);
        let to =
            if self == Self::KeyOrdinal || self == Self::Index { 0 } else { u32::from(scale.unsigned_abs()) };
        let factor = 10_i64.pow(to.saturating_sub(from).min(MAX_SHIFT));
        let divisor = 10_i64.pow(from.saturating_sub(to));
        let bound = 10_i64.pow(u32::from(precision).min(MAX_DIGITS));
        let values: Vec<i128> =
            integers.map(|integer| i128::from(integer / divisor * factor % bound)).collect();
        let array = Decimal128Array::new(values.into(), nulls);
        Arc::new(
            array
                .with_precision_and_scale(precision, scale)
                .expect("the schema reader checks precision and scale"),
        )
    }
}

pub fn booleans(source: NumberSource, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
    let values = match source {
        NumberSource::Index => draws.indices.iter().map(|index| index & 1 == 1).collect(),
        NumberSource::KeyOrdinal => draws.key_ordinals().map(|ordinal| ordinal & 1 == 1).collect(),
        NumberSource::Range(_) => draws.bits(1).map(|bits| bits >> 63 == 1).collect(),
    };
    Arc::new(BooleanArray::new(values, nulls))
}
