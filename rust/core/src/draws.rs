//! The draws of one column at the indices of one array.

use crate::counter::{ColumnKey, Stream};

/// Of 1,024 optional values, as many are null.
const NULLS_OF_1024: u64 = 51;
/// A list's element, or a map's entry, has the index `4 * index of the list + position`.
pub const SLOTS: u64 = 4;

/// What a generator of one array needs: the column's key, and the index of each value.
///
/// The index is the row at the top and in structs; in lists and maps it is made of the list's index.
#[derive(Clone, Copy)]
pub struct Draws<'a> {
    pub key: ColumnKey,
    pub indices: &'a [u64],
}

impl<'a> Draws<'a> {
    /// The random bits of a draw, by value.
    pub fn bits(self, draw: u64) -> impl ExactSizeIterator<Item = u64> + Clone + 'a {
        let stream = self.key.stream(draw);
        self.indices.iter().map(move |&index| stream.at(index))
    }

    /// A draw's stream, for values that use several draws.
    pub fn stream(self, draw: u64) -> Stream {
        self.key.stream(draw)
    }

    /// Whether each value is there; `None` if the column is required.
    pub fn validity(self, is_required: bool) -> Option<arrow_buffer::NullBuffer> {
        (!is_required).then(|| self.bits(0).map(|bits| bits >> 54 >= NULLS_OF_1024).collect())
    }

    /// The ordinals of map keys, from 0 to 8, which differ within a map.
    pub fn key_ordinals(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        let stream = self.key.stream(1);
        self.indices
            .iter()
            .map(move |&index| crate::counter::below(stream.at(index / SLOTS), 6) + index % SLOTS)
    }
}
