//! Values of dates, times and timestamps; rows arrive about in order, some of them late.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Date32Array, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::NullBuffer;

use crate::counter::below;
use crate::draws::Draws;

/// How the times of a column are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// One second for each index, with jitter, and some late.
    Arrival,
    /// A day between 1950 and 2004, for dates.
    BirthDate,
    /// Unique by the index.
    Index,
    /// By the ordinal of a map's key.
    KeyOrdinal,
}

/// 2024-01-01.
const FIRST_DAY: i64 = 19_723;
const DAY_SECONDS: i64 = 86_400;
const FIRST_BIRTH_DAY: i64 = -7_305;
const BIRTH_DAYS: u64 = 20_000;
const INDEX_MASK: u64 = (1 << 30) - 1;
const UNIQUE_DAY_MASK: u64 = (1 << 20) - 1;
const MILLISECONDS_OF_DAY: u64 = 86_400_000;
/// Late rows are up to an hour late.
const MAX_LATE_MILLISECONDS: u64 = 3_600_000;
const JITTER_MASK: u64 = (1 << 20) - 1;

/// One of 16 rows is late.
fn is_late(bits: u64) -> bool {
    bits >> 60 == 0
}

fn arrival_seconds(index: u64) -> i64 {
    FIRST_DAY * DAY_SECONDS + (index & INDEX_MASK) as i64
}

pub fn dates(source: TimeSource, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
    let days: Vec<i32> = match source {
        TimeSource::Arrival => draws
            .indices
            .iter()
            .zip(draws.bits(1))
            .map(|(&index, bits)| {
                let late = if is_late(bits) { 1 + (bits & 3) as i64 } else { 0 };
                (arrival_seconds(index) / DAY_SECONDS - late) as i32
            })
            .collect(),
        TimeSource::BirthDate => {
            draws.bits(1).map(|bits| (FIRST_BIRTH_DAY + below(bits, BIRTH_DAYS) as i64) as i32).collect()
        }
        TimeSource::Index => {
            draws.indices.iter().map(|&index| (FIRST_DAY + (index & UNIQUE_DAY_MASK) as i64) as i32).collect()
        }
        TimeSource::KeyOrdinal => {
            draws.key_ordinals().map(|ordinal| (FIRST_DAY + ordinal as i64) as i32).collect()
        }
    };
    Arc::new(Date32Array::new(days.into(), nulls))
}

pub fn times(source: TimeSource, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
    let microseconds: Vec<i64> = match source {
        TimeSource::Index => {
            draws.indices.iter().map(|&index| (index % (MILLISECONDS_OF_DAY * 1_000)) as i64).collect()
        }
        TimeSource::KeyOrdinal => draws.key_ordinals().map(|ordinal| ordinal as i64 * 1_000_000).collect(),
        TimeSource::Arrival | TimeSource::BirthDate => draws
            .bits(1)
            .map(|bits| (below(bits, MILLISECONDS_OF_DAY) * 1_000 + (bits & 511)) as i64)
            .collect(),
    };
    Arc::new(Time64MicrosecondArray::new(microseconds.into(), nulls))
}

pub fn timestamps(
    source: TimeSource,
    draws: Draws<'_>,
    nulls: Option<NullBuffer>,
    has_zone: bool,
) -> ArrayRef {
    let values: Vec<i64> = instants(source, draws).map(|(microseconds, _)| microseconds).collect();
    let array = TimestampMicrosecondArray::new(values.into(), nulls);
    Arc::new(array.with_timezone_opt(has_zone.then_some("UTC")))
}

pub fn nanosecond_timestamps(
    source: TimeSource,
    draws: Draws<'_>,
    nulls: Option<NullBuffer>,
    has_zone: bool,
) -> ArrayRef {
    let values: Vec<i64> = instants(source, draws)
        .map(|(microseconds, nanoseconds)| microseconds * 1_000 + nanoseconds)
        .collect();
    let array = TimestampNanosecondArray::new(values.into(), nulls);
    Arc::new(array.with_timezone_opt(has_zone.then_some("UTC")))
}

/// Microseconds since 1970, and the nanoseconds within the microsecond.
fn instants<'a>(source: TimeSource, draws: Draws<'a>) -> Box<dyn Iterator<Item = (i64, i64)> + 'a> {
    let indices = draws.indices.iter();
    match source {
        TimeSource::Index => Box::new(indices.map(|&index| (arrival_seconds(index) * 1_000_000, 0))),
        TimeSource::KeyOrdinal => {
            Box::new(draws.key_ordinals().map(|ordinal| (arrival_seconds(ordinal) * 1_000_000, 0)))
        }
        TimeSource::Arrival | TimeSource::BirthDate => {
            Box::new(indices.zip(draws.bits(1)).map(|(&index, bits)| {
                let late =
                    if is_late(bits) { (below(bits << 12, MAX_LATE_MILLISECONDS) * 1_000) as i64 } else { 0 };
                let jitter = (bits & JITTER_MASK) as i64;
                (arrival_seconds(index) * 1_000_000 - late + jitter, ((bits >> 20) & 511) as i64)
            }))
        }
    }
}
