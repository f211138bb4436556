//! The reader of schemas: its errors, and that no text makes it panic.

use std::time::{Duration, Instant};

use icemigrate_core::{read_schema, TableGenerator, Type};

fn column(data_type: &str) -> String {
    format!(r#"{{"fields": [{{"id": 1, "name": "a", "required": false, "type": {data_type}}}]}}"#)
}

fn message(text: &str) -> String {
    read_schema(text).expect_err("the schema is wrong").to_string()
}

#[test]
fn types_are_read() {
    let read =
        |data_type: &str| read_schema(&column(data_type)).expect("the type is valid")[0].data_type.clone();
    assert_eq!(read(r#""decimal(9,2)""#), Type::Decimal { precision: 9, scale: 2 });
    assert_eq!(read(r#""decimal( 38 , 0 )""#), Type::Decimal { precision: 38, scale: 0 });
    assert_eq!(read(r#""fixed[16]""#), Type::Fixed(16));
    assert_eq!(read(r#""timestamptz_ns""#), Type::Timestamp { is_nanosecond: true, has_zone: true });
}

#[test]
fn a_wrong_schema_is_one_error_that_names_the_column() {
    for (data_type, problem) in [
        (r#""text""#, "there is no test data for the type `text`"),
        (
            r#""decimal(39, 2)""#,
            "`decimal(39, 2)` has no precision from 1 to 38 and scale up to the precision",
        ),
        (r#""decimal(2, 3)""#, "`decimal(2, 3)` has no precision from 1 to 38 and scale up to the precision"),
        (r#""fixed[0]""#, "`fixed[0]` has no length from 1 to 65536 bytes"),
        ("1", "the type is not a string or an object"),
        (r#"{"type": "set"}"#, "there is no test data for the type `set`"),
        (r#"{"type": "struct", "fields": []}"#, "the struct has no field that a file stores"),
        (r#"{"type": "list", "element-id": 2, "element": "int"}"#, "`element-required` is not true or false"),
    ] {
        assert_eq!(message(&column(data_type)), format!("column `a`: {problem}"));
    }
    assert!(message("{").starts_with("the schema is not JSON: "));
    assert_eq!(message("[]"), "the schema is not a JSON object");
    assert_eq!(message("{}"), "`fields` is not a list");
    assert_eq!(message(&column(r#""unknown""#)), "the schema has no column that a file stores");
    let twice =
        r#"{"fields": [{"id": 1, "name": "a", "type": "int"}, {"id": 2, "name": "a", "type": "int"}]}"#;
    assert_eq!(message(twice), "two fields have the name `a`");
    let far = r#"{"fields": [{"id": 9999999999, "name": "a", "type": "int"}]}"#;
    assert_eq!(message(far), "column `a`: the field id 9999999999 is out of range");
}

#[test]
fn a_type_that_is_nested_too_deep_is_an_error() {
    let mut data_type = r#""int""#.to_owned();
    for _ in 0..40 {
        data_type = format!(
            r#"{{"type": "list", "element-id": 2, "element-required": true, "element": {data_type}}}"#
        );
    }
    assert!(message(&column(&data_type)).ends_with("types are nested more than 32 levels deep"));
}

/// A small generator of mutations: SplitMix64, so that a failure can be repeated.
struct Mutations(u64);

impl Mutations {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }

    /// A text with up to eight parts that are removed, repeated or replaced by parts of JSON.
    fn mutate(&mut self, text: &str) -> String {
        const PARTS: [&str; 24] = [
            "{",
            "}",
            "[",
            "]",
            "\"",
            ":",
            ",",
            "null",
            "true",
            "-1",
            "1e999",
            "99999999999999999999",
            "\"type\"",
            "\"fields\"",
            "\"list\"",
            "\"map\"",
            "\"struct\"",
            "\"unknown\"",
            "\"fixed[65536]\"",
            "\"fixed[-1]\"",
            "\"decimal(300,-5)\"",
            "\\u0000",
            "é",
            "\"identifier-field-ids\":[1,\"a\"]",
        ];
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(8) {
            let start = self.below(characters.len());
            let end = (start + self.below(24)).min(characters.len());
            let replacement: Vec<char> = match self.below(3) {
                0 => Vec::new(),
                1 => PARTS[self.below(PARTS.len())].chars().collect(),
                _ => characters[start..end].iter().chain(&characters[start..end]).copied().collect(),
            };
            characters.splice(start..end, replacement);
        }
        characters.into_iter().collect()
    }
}

const SEEDS: [&str; 3] = [
    r#"{"type":"struct","schema-id":0,"identifier-field-ids":[1],"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"amount","required":false,"type":"decimal(9, 2)"},{"id":3,"name":"code","required":false,"type":"fixed[12]"}]}"#,
    r#"{"fields":[{"id":1,"name":"tags","required":true,"type":{"type":"list","element-id":2,"element":"string","element-required":false}}]}"#,
    r#"{"fields":[{"id":1,"name":"m","required":true,"type":{"type":"map","key-id":2,"key":{"type":"struct","fields":[{"id":4,"name":"x","required":true,"type":"uuid"}]},"value-id":3,"value":"timestamptz_ns","value-required":false}}]}"#,
];

/// How long mutated schemas are tried: `FUZZ_SECONDS`, or a second.
fn fuzz_time() -> Duration {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// It runs on stable Rust: cargo-fuzz needs a nightly compiler, which a machine may not have.
#[test]
fn fuzz_no_text_makes_the_reader_panic() {
    let mut mutations = Mutations(20_240_101);
    let mut corpus: Vec<String> = SEEDS.map(str::to_owned).to_vec();
    let (began, limit) = (Instant::now(), fuzz_time());
    let (mut tried, mut valid) = (0_u64, 0_u64);
    while tried < 1_000 || began.elapsed() < limit {
        let chosen = mutations.below(corpus.len());
        let text = mutations.mutate(&corpus[chosen]);
        tried += 1;
        if let Ok(generator) = TableGenerator::new(&text, tried) {
            valid += 1;
            assert_eq!(generator.batch(tried, 2).num_rows(), 2);
            // Valid schemas are mutated further; the corpus stays small.
            if text.len() < 2_000 {
                let slot = SEEDS.len() + mutations.below(61);
                if slot < corpus.len() {
                    corpus[slot] = text
                } else {
                    corpus.push(text)
                }
            }
        }
    }
    println!("{tried} schemas were tried, {valid} of them valid");
    assert!(valid > 10, "only {valid} of {tried} mutated schemas are valid");
}
