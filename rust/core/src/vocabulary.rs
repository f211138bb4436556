//! The words of test data, and the endings of column names that suggest a meaning.
//!
//! The file is shared with the Python generator: both read the same words.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

static TEXT: &str = include_str!("../../../icemigrate/test_data/vocabulary.json");

/// The shared vocabulary.
pub static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| Vocabulary::parse(TEXT));

/// How numbers of a meaning are distributed: `low` plus a number from a range, divided by `10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    pub low: i64,
    pub spread: Spread,
    pub scale: u32,
}

/// The range of a number, and its distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Uniform below a bound.
    Below(u64),
    /// Log-uniform with a number of bits.
    Bits(u64),
}

/// The words, meanings and number ranges.
#[derive(Debug)]
pub struct Vocabulary {
    meanings: HashMap<String, String>,
    numbers: HashMap<String, NumberRange>,
    choices: HashMap<String, Vec<String>>,
    pub first_names: Vec<String>,
    pub last_names: Vec<String>,
    pub domains: Vec<String>,
    pub map_keys: Vec<String>,
    pub words: Vec<String>,
}

impl Vocabulary {
    fn parse(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).expect("the vocabulary is JSON");
        let mut meanings = HashMap::new();
        for (meaning, endings) in object(&json["meanings"]) {
            meanings.extend(strings(endings).into_iter().map(|ending| (ending, meaning.clone())));
        }
        Self {
            meanings,
            numbers: object(&json["numbers"])
                .map(|(name, range)| (name.clone(), number_range(range)))
                .collect(),
            choices: object(&json["choices"]).map(|(name, words)| (name.clone(), strings(words))).collect(),
            first_names: strings(&json["first_names"]),
            last_names: strings(&json["last_names"]),
            domains: strings(&json["domains"]),
            map_keys: strings(&json["map_keys"]),
            words: strings(&json["words"]),
        }
    }

    /// The meaning of a column's name: of its longest ending, word by word, that the vocabulary has.
    pub fn meaning_of(&self, name: &str) -> Option<&str> {
        let words = words_of(name);
        (0..words.len()).find_map(|first| self.meanings.get(&words[first..].join("_")).map(String::as_str))
    }

    /// The numbers of a meaning, or the default ones.
    pub fn numbers_of(&self, meaning: Option<&str>) -> NumberRange {
        *meaning.and_then(|name| self.numbers.get(name)).unwrap_or(&self.numbers["default"])
    }

    /// The words of a meaning that is a choice, the most frequent first; their number is `2^n - 1`.
    pub fn choices_of(&self, meaning: Option<&str>) -> Option<&[String]> {
        meaning.and_then(|name| self.choices.get(name)).map(Vec::as_slice)
    }
}

/// The words of a name in lower case, split at what is no ASCII letter or digit and before a capital letter
/// that follows a small one.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_after_small = false;
    for character in name.chars() {
        let is_boundary =
            !character.is_ascii_alphanumeric() || (is_after_small && character.is_ascii_uppercase());
        if is_boundary {
            words.push(String::new());
        }
        if character.is_ascii_alphanumeric() {
            let last = words.len() - 1;
            words[last].push(character.to_ascii_lowercase());
        }
        is_after_small = character.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn object(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    json.as_object().expect("the vocabulary has an object here").iter()
}

fn strings(json: &Value) -> Vec<String> {
    let list = json.as_array().expect("the vocabulary has a list here");
    list.iter().map(|word| word.as_str().expect("the list has strings").to_owned()).collect()
}

fn number_range(json: &Value) -> NumberRange {
    let spread = match json.get("bits") {
        Some(bits) => Spread::Bits(bits.as_u64().expect("bits are a number")),
        None => Spread::Below(json["below"].as_u64().expect("a range has `bits` or `below`")),
    };
    let low = json["low"].as_i64().expect("low is a number");
    let scale = json["scale"].as_u64().and_then(|scale| u32::try_from(scale).ok());
    NumberRange { low, spread, scale: scale.expect("scale is a number") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_ending_of_a_name_gives_its_meaning() {
        let meaning = |name| VOCABULARY.meaning_of(name);
        assert_eq!(meaning("customerEmail"), Some("email"));
        assert_eq!(meaning("billing_first_name"), Some("first_name"));
        assert_eq!(meaning("Product Name"), Some("product"));
        assert_eq!(meaning("order-id"), Some("key"));
        assert_eq!(meaning("payload"), None);
        assert_eq!(meaning("é"), None);
    }

    #[test]
    fn choices_have_as_many_words_as_their_draw_has_numbers() {
        for words in VOCABULARY.choices.values() {
            assert!((words.len() + 1).is_power_of_two());
        }
        assert_eq!(
            [VOCABULARY.first_names.len(), VOCABULARY.last_names.len(), VOCABULARY.words.len()],
            [32; 3]
        );
        assert_eq!([VOCABULARY.domains.len(), VOCABULARY.map_keys.len()], [4, 9]);
    }
}
