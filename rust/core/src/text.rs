//! Values of `string`.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::counter::{below, log_uniform};
use crate::draws::Draws;
use crate::vocabulary::VOCABULARY;

/// How the texts of a column are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    Address,
    /// One of the words, the first ones most often, and the bits of their number.
    Choice(&'static [String], u64),
    Email,
    FirstName,
    FullName,
    /// Unique by the index.
    Index,
    Ip,
    Key,
    LastName,
    /// By the ordinal of a map's key.
    MapKey,
    Phone,
    PostalCode,
    Sentence,
    Url,
    /// A word and a number.
    Word,
}

impl TextSource {
    /// The source of a meaning.
    pub fn of_meaning(meaning: Option<&str>) -> Self {
        if let Some(words) = VOCABULARY.choices_of(meaning) {
            return Self::Choice(words, u64::from((words.len() + 1).trailing_zeros()));
        }
        match meaning {
            Some("address") => Self::Address,
            Some("email") => Self::Email,
            Some("first_name") => Self::FirstName,
            Some("full_name") => Self::FullName,
            Some("ip") => Self::Ip,
            Some("key") => Self::Key,
            Some("last_name") => Self::LastName,
            Some("phone") => Self::Phone,
            Some("postal_code") => Self::PostalCode,
            Some("sentence") => Self::Sentence,
            Some("url") => Self::Url,
            _ => Self::Word,
        }
    }
}

pub fn strings(source: TextSource, draws: Draws<'_>, nulls: Option<NullBuffer>) -> ArrayRef {
    let mut out = Texts::with_capacity(draws.indices.len());
    match source {
        TextSource::Index => {
            for &index in draws.indices {
                out.text("id-");
                out.padded(index, 12);
                out.end();
            }
        }
        TextSource::MapKey => {
            for ordinal in draws.key_ordinals() {
                out.text(&VOCABULARY.map_keys[ordinal as usize]);
                out.end();
            }
        }
        _ => {
            for bits in draws.bits(1) {
                out.value(source, bits);
                out.end();
            }
        }
    }
    out.finish(nulls)
}

/// The buffers of an array of strings while it is made.
struct Texts {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
}

impl Texts {
    fn with_capacity(values: usize) -> Self {
        let mut offsets = Vec::with_capacity(values + 1);
        offsets.push(0);
        Self { bytes: Vec::with_capacity(values * 16), offsets }
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A word of a list of 32, by the low bits.
    fn word(&mut self, words: &[String], bits: u64) {
        self.text(&words[(bits & 31) as usize]);
    }

    fn lower_word(&mut self, words: &[String], bits: u64) {
        let start = self.bytes.len();
        self.word(words, bits);
        self.bytes[start..].make_ascii_lowercase();
    }

    fn number(&mut self, number: u64) {
        self.padded(number, 1);
    }

    /// A number with zeros in front, if it has fewer digits.
    fn padded(&mut self, mut number: u64, digits: usize) {
        let mut reversed = [b'0'; 20];
        let mut used = 0;
        while number > 0 || used < digits {
            reversed[used] = b'0' + (number % 10) as u8;
            number /= 10;
            used += 1;
        }
        self.bytes.extend(reversed[..used].iter().rev());
    }

    fn value(&mut self, source: TextSource, bits: u64) {
        let words = &VOCABULARY.words;
        match source {
            TextSource::Choice(choices, size) => self.text(&choices[log_uniform(bits, size) as usize]),
            TextSource::FirstName => self.word(&VOCABULARY.first_names, bits),
            TextSource::LastName => self.word(&VOCABULARY.last_names, bits >> 5),
            TextSource::FullName => {
                self.word(&VOCABULARY.first_names, bits);
                self.text(" ");
                self.word(&VOCABULARY.last_names, bits >> 5);
            }
            TextSource::Email => {
                self.lower_word(&VOCABULARY.first_names, bits);
                self.text(".");
                self.lower_word(&VOCABULARY.last_names, bits >> 5);
                self.number((bits >> 10) & 1023);
                self.text("@");
                self.text(&VOCABULARY.domains[((bits >> 20) & 3) as usize]);
            }
            TextSource::Address => {
                self.number(1 + below(bits, 999));
                self.text(" ");
                self.word(&VOCABULARY.last_names, bits);
                self.text(" Street");
            }
            TextSource::Phone => {
                self.text("+1555");
                self.padded(below(bits, 10_000_000), 7);
            }
            TextSource::PostalCode => self.padded(below(bits, 100_000), 5),
            TextSource::Key => self.padded(1 + log_uniform(bits, 20), 8),
            TextSource::Ip => {
                self.text("10.");
                self.number(bits & 255);
                self.text(".");
                self.number((bits >> 8) & 255);
                self.text(".");
                self.number((bits >> 16) & 255);
            }
            TextSource::Url => {
                self.text("https://example.com/");
                self.word(words, bits);
                self.text("/");
                self.number((bits >> 5) & 65_535);
            }
            TextSource::Sentence => {
                for position in 0..6 {
                    self.text(if position > 0 { " " } else { "" });
                    self.word(words, bits >> (5 * position));
                }
            }
            TextSource::Word | TextSource::Index | TextSource::MapKey => {
                self.word(words, bits);
                self.text("-");
                self.number(below(bits, 1_000));
            }
        }
    }

    fn end(&mut self) {
        let length = i32::try_from(self.bytes.len()).expect("a batch has less than 2 GiB of text");
        self.offsets.push(length);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Arc::new(StringArray::new(offsets, self.bytes.into(), nulls))
    }
}
