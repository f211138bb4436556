//! The counter-based generator: every value is a function of the seed, the column's path and the row.
//!
//! `docs/test-data.md` has the rules, which the Python generator follows too.

/// SplitMix64's increment: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;
/// The low bits that [`log_uniform`] takes its offset from.
const OFFSET_BITS: u32 = 40;

/// SplitMix64's finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The draws of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnKey(u64);

impl ColumnKey {
    /// The key of a column: FNV-1a of its path in UTF-8, mixed with the seed.
    pub fn new(seed: u64, path: &str) -> Self {
        let hash =
            path.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        Self(mix(hash ^ mix(seed.wrapping_add(GOLDEN))))
    }

    /// The stream of a draw's number: 0 decides about null, the others make the value.
    pub fn stream(self, draw: u64) -> Stream {
        Stream(mix(self.0.wrapping_add(draw.wrapping_mul(GOLDEN))))
    }
}

/// One SplitMix64 sequence, read at any index.
#[derive(Clone, Copy, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The 64 random bits of an index.
    #[inline]
    pub fn at(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(index.wrapping_mul(GOLDEN)))
    }
}

/// A number from 0 to `bound - 1`, from the upper 32 bits; `bound` is at most 2^32.
#[inline]
pub fn below(hash: u64, bound: u64) -> u64 {
    ((hash >> 32) * bound) >> 32
}

/// A number from 0 to `2^bits - 2`, the small ones most often: about as in Zipf's law, without floating point.
///
/// The length in bits is uniform (upper 6 bits), then the number among those of the length (low 40 bits).
#[inline]
pub fn log_uniform(hash: u64, bits: u64) -> u64 {
    let length = ((hash >> 58) * bits) >> 6;
    let offset = (hash & ((1 << OFFSET_BITS) - 1)) >> (u64::from(OFFSET_BITS) - length);
    (1 << length) + offset - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        // The published first outputs for the seed 1234567; its first output is that of index 1.
        let stream = Stream(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([1, 2, 3].map(|index| stream.at(index)), expected);
    }

    #[test]
    fn numbers_stay_inside_their_bounds() {
        for hash in [0, 1, u64::MAX, u64::MAX >> 1, 1 << 40, (1 << 40) - 1] {
            assert!(below(hash, 7) < 7);
            for bits in [1, 2, 5, 20, 40] {
                assert!(log_uniform(hash, bits) <= (1 << bits) - 2);
            }
        }
        assert_eq!(log_uniform(u64::MAX, 20), (1 << 20) - 2);
    }

    #[test]
    fn seeds_paths_and_draws_give_other_numbers() {
        let key = ColumnKey::new(1, "a");
        assert_ne!(key, ColumnKey::new(2, "a"));
        assert_ne!(key, ColumnKey::new(1, "b"));
        assert_ne!(key.stream(0).at(5), key.stream(1).at(5));
    }
}
