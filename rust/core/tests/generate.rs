//! Rows for schemas, through the public functions.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};
use icemigrate_core::{generate_test_data, TableGenerator};

const ORDERS: &str = r#"{"type": "struct", "identifier-field-ids": [1], "fields": [
    {"id": 1, "name": "order", "required": true, "type": "long"},
    {"id": 2, "name": "customer_id", "required": true, "type": "long"},
    {"id": 3, "name": "at", "required": true, "type": "timestamptz"},
    {"id": 4, "name": "email", "required": false, "type": "string"},
    {"id": 5, "name": "tags", "required": false, "type": {
        "type": "map", "key-id": 6, "key": "string", "value-id": 7, "value": "double", "value-required": false}},
    {"id": 8, "name": "lines", "required": true, "type": {
        "type": "list", "element-id": 9, "element-required": true, "element": {"type": "struct", "fields": [
            {"id": 10, "name": "product", "required": true, "type": "string"},
            {"id": 11, "name": "price", "required": false, "type": "decimal(9, 2)"}]}}}]}"#;

fn orders(seed: u64, first: u64, rows: usize) -> RecordBatch {
    TableGenerator::new(ORDERS, seed).expect("the schema is valid").batch(first, rows)
}

#[test]
fn a_row_does_not_depend_on_its_batch() {
    let whole = orders(7, 1_000, 500);
    assert_eq!(whole.slice(100, 400), orders(7, 1_100, 400));
    assert_ne!(whole, orders(8, 1_000, 500));
}

#[test]
fn batches_have_all_rows_in_order() {
    let rows = icemigrate_core::BATCH_ROWS as u64 + 3;
    let batches: Vec<RecordBatch> =
        generate_test_data(rows, 1, ORDERS).expect("the schema is valid").collect();
    assert_eq!(
        batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(),
        [icemigrate_core::BATCH_ROWS, 3]
    );
    assert_eq!(batches[1].column(0).as_primitive::<Int64Type>().value(0), icemigrate_core::BATCH_ROWS as i64);
}

#[test]
fn fewer_than_one_row_is_an_error() {
    let error = generate_test_data(0, 1, ORDERS).err().expect("there are no rows");
    assert_eq!(error.to_string(), "the number of rows is less than 1");
}

#[test]
fn identifiers_are_unique_and_keys_are_skewed() {
    let batch = orders(1, 50, 10_000);
    let ids: Vec<i64> = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(ids, (50..10_050).collect::<Vec<i64>>());
    let customers = batch.column(1).as_primitive::<Int64Type>().values().to_vec();
    let of_first = customers.iter().filter(|&&customer| customer == 1).count();
    assert!(of_first > 200, "the first customer has {of_first} orders");
    assert!(customers.iter().any(|&customer| customer > 100_000));
}

#[test]
fn some_rows_are_late() {
    let batch = orders(1, 0, 10_000);
    let times = batch.column(2).as_primitive::<TimestampMicrosecondType>().values().to_vec();
    let mut newest = times[0];
    let mut late = 0;
    for time in times {
        late += usize::from(newest - time > 60_000_000);
        newest = newest.max(time);
    }
    assert!((400..800).contains(&late), "{late} of 10,000 rows are late by more than a minute");
}

#[test]
fn optional_columns_have_nulls_and_required_ones_have_none() {
    let batch = orders(1, 0, 10_000);
    let nulls: Vec<usize> = batch.columns().iter().map(|column| column.null_count()).collect();
    assert_eq!([nulls[0], nulls[1], nulls[2], nulls[5]], [0; 4]);
    assert!((400..600).contains(&nulls[3]) && (400..600).contains(&nulls[4]), "{nulls:?}");
}

#[test]
fn keys_of_a_map_differ() {
    let batch = orders(1, 0, 2_000);
    let maps = batch.column(4).as_map();
    for row in 0..maps.len() {
        let entries = maps.value(row);
        let mut keys: Vec<&str> = entries.column(0).as_string::<i32>().iter().flatten().collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
