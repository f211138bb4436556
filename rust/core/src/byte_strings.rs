//! Values of `uuid`, `fixed` and `binary`.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, FixedSizeBinaryArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::counter::Stream;
use crate::draws::Draws;
use crate::numbers::NumberSource;

const UUID_BYTES: i32 = 16;
/// The version, 4, is in the upper half of byte 6; the variant, 2, in the two upper bits of byte 8.
const VERSION_MASK: u64 = 0xF << 52;
const VERSION: u64 = 4 << 52;
const VARIANT_MASK: u64 = 0xC0;
const VARIANT: u64 = 0x80;

pub fn uuids(source: NumberSource, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
    if source == NumberSource::KeyOrdinal {
        return fixed(source, draws, nulls, UUID_BYTES);
    }
    let mut bytes = Vec::with_capacity(draws.indices.len() * UUID_BYTES as usize);
    for (first, second) in draws.bits(1).zip(draws.bits(2)) {
        bytes.extend_from_slice(&(first & !VERSION_MASK | VERSION).to_le_bytes());
        bytes.extend_from_slice(&(second & !VARIANT_MASK | VARIANT).to_le_bytes());
    }
    Arc::new(FixedSizeBinaryArray::new(UUID_BYTES, bytes.into(), nulls))
}

pub fn fixed(source: NumberSource, draws: Draws<'_>, nulls: Option<NullBuffer>, length: i32) -> ArrayRef {
    let bytes = match source {
        NumberSource::KeyOrdinal => {
            let mut bytes = vec![0; draws.indices.len() * length as usize];
            for (value, ordinal) in bytes.chunks_exact_mut(length as usize).zip(draws.key_ordinals()) {
                value[length as usize - 1] = ordinal as u8;
            }
            bytes
        }
        _ => random_bytes(source, draws, length as usize),
    };
    Arc::new(FixedSizeBinaryArray::new(length, bytes.into(), nulls))
}

/// Draw 1 gives bytes 0 to 7 of a value, little end first, draw 2 the next eight, and so on.
fn random_bytes(source: NumberSource, draws: Draws<'_>, length: usize) -> Vec<u8> {
    let streams: Vec<Stream> = (0..length.div_ceil(8)).map(|word| draws.stream(1 + word as u64)).collect();
    let mut bytes = Vec::with_capacity(draws.indices.len() * length);
    for &index in draws.indices {
        for (word, stream) in streams.iter().enumerate() {
            let bits = if word == 0 && source == NumberSource::Index { index } else { stream.at(index) };
            let taken = (length - word * 8).min(8);
            bytes.extend_from_slice(&bits.to_le_bytes()[..taken]);
        }
    }
    bytes
}

/// Eight or sixteen bytes, as the top bit of draw 3 says; one byte for a map's key.
pub fn binaries(source: NumberSource, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
    let (bytes, lengths): (Vec<u8>, Vec<usize>) = match source {
        NumberSource::KeyOrdinal => {
            (draws.key_ordinals().map(|ordinal| ordinal as u8).collect(), vec![1; draws.indices.len()])
        }
        _ => {
            let lengths: Vec<usize> =
                draws.bits(3).map(|bits| if bits >> 63 == 1 { 16 } else { 8 }).collect();
            let all = random_bytes(source, draws, 16);
            let taken = all.chunks_exact(16).zip(&lengths).flat_map(|(value, &length)| &value[..length]);
            (taken.copied().collect(), lengths)
        }
    };
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.to_vec()));
    Arc::new(BinaryArray::new(offsets, bytes.into(), nulls))
}
