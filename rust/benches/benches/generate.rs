//! How fast rows are generated, and how fast they are written.

use std::hint::black_box;
use std::io;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use icemigrate_core::{write_test_data, TableGenerator, WriteOptions};

const ROWS: usize = 131_072;
const ORDERS: &str = r#"{"fields": [
    {"id": 1, "name": "id", "required": true, "type": "long"},
    {"id": 2, "name": "customer_id", "required": true, "type": "long"},
    {"id": 3, "name": "email", "required": false, "type": "string"},
    {"id": 4, "name": "city", "required": false, "type": "string"},
    {"id": 5, "name": "status", "required": true, "type": "string"},
    {"id": 6, "name": "amount", "required": true, "type": "decimal(10, 2)"},
    {"id": 7, "name": "quantity", "required": false, "type": "int"},
    {"id": 8, "name": "ratio", "required": false, "type": "double"},
    {"id": 9, "name": "ordered_at", "required": true, "type": "timestamptz"},
    {"id": 10, "name": "tags", "required": false, "type": {
        "type": "list", "element-id": 11, "element": "string", "element-required": true}}]}"#;

fn one_column(data_type: &str) -> TableGenerator {
    let schema =
        format!(r#"{{"fields": [{{"id": 1, "name": "a", "required": false, "type": "{data_type}"}}]}}"#);
    TableGenerator::new(&schema, 1).expect("the schema is valid")
}

fn generate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    let orders = TableGenerator::new(ORDERS, 1).expect("the schema is valid");
    group.bench_function("ten columns", |bencher| bencher.iter(|| black_box(orders.batch(0, ROWS))));
    for data_type in ["long", "double", "decimal(18, 4)", "string", "timestamp", "uuid"] {
        let generator = one_column(data_type);
        group.bench_function(data_type, |bencher| bencher.iter(|| black_box(generator.batch(0, ROWS))));
    }
    group.finish();
}

fn write(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write");
    group.throughput(Throughput::Elements(4 * ROWS as u64)).sample_size(10);
    let orders = TableGenerator::new(ORDERS, 1).expect("the schema is valid");
    for threads in [1, 2] {
        let options = WriteOptions { threads, ..WriteOptions::default() };
        group.bench_function(format!("ten columns, {threads} threads"), |bencher| {
            bencher
                .iter(|| write_test_data(&orders, 0, 4 * ROWS as u64, io::sink(), &options, &mut |_| true));
        });
    }
    group.finish();
}

criterion_group!(benches, generate, write);
criterion_main!(benches);
