//! Parquet files, through the public functions.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use arrow_array::RecordBatch;
use icemigrate_core::{
    generate_test_data, write_parquet_batch, write_test_data, Error, TableGenerator, WriteOptions,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};

const CITIES: &str = r#"{"fields": [
    {"id": 7, "name": "id", "required": true, "type": "long"},
    {"id": 3, "name": "address", "required": false, "type": {"type": "struct", "fields": [
        {"id": 9, "name": "city", "required": false, "type": "string"}]}}]}"#;

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&folder).expect("the folder can be created");
    folder.join(name)
}

fn write(rows: u64, options: &WriteOptions) -> Vec<u8> {
    let generator = TableGenerator::new(CITIES, 5).expect("the schema is valid");
    let mut bytes = Vec::new();
    write_test_data(&generator, 0, rows, &mut bytes, options, &mut |_| true)
        .expect("a vector accepts all bytes");
    bytes
}

#[test]
fn a_file_has_the_generated_rows() {
    let path = scratch("rows.parquet");
    let batches: Vec<RecordBatch> =
        generate_test_data(1_000, 5, CITIES).expect("the schema is valid").collect();
    write_parquet_batch(&batches, &path, &WriteOptions::default()).expect("the folder is writable");
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).expect("it was written"))
        .expect("it is Parquet");
    let read: Vec<RecordBatch> =
        builder.with_batch_size(2_000).build().expect("it has rows").map(Result::unwrap).collect();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].columns(), batches[0].columns());
}

#[test]
fn row_groups_have_statistics_field_ids_and_bloom_filters() {
    let path = scratch("groups.parquet");
    let options = WriteOptions {
        rows_per_group: 400,
        bloom_filters: vec!["address.city".into()],
        ..WriteOptions::default()
    };
    fs::write(&path, write(1_000, &options)).expect("the folder is writable");
    let reader =
        SerializedFileReader::new(File::open(&path).expect("it was written")).expect("it is Parquet");
    let metadata = reader.metadata();
    let counts: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(counts, [400, 400, 200]);
    let root = metadata.file_metadata().schema();
    let ids: Vec<i32> = root.get_fields().iter().map(|field| field.get_basic_info().id()).collect();
    assert_eq!(ids, [7, 3]);
    let [id, city] = [0, 1].map(|column| metadata.row_group(1).column(column));
    assert!(matches!(id.compression(), Compression::ZSTD(_)));
    assert!(id
        .statistics()
        .is_some_and(|statistics| statistics.min_bytes_opt() == Some(&400_i64.to_le_bytes())));
    assert_eq!([id.bloom_filter_offset().is_some(), city.bloom_filter_offset().is_some()], [false, true]);
}

#[test]
fn the_number_of_threads_does_not_change_the_file() {
    let with =
        |threads| write(3_000, &WriteOptions { rows_per_group: 500, threads, ..WriteOptions::default() });
    assert_eq!(with(1), with(4));
}

#[test]
fn progress_is_reported_and_can_end_the_work() {
    let generator = TableGenerator::new(CITIES, 5).expect("the schema is valid");
    let options = WriteOptions { rows_per_group: 100, ..WriteOptions::default() };
    let mut seen = Vec::new();
    let result = write_test_data(&generator, 0, u64::MAX / 2, io::sink(), &options, &mut |rows| {
        seen.push(rows);
        seen.len() < 3
    });
    assert!(matches!(result, Err(Error::Cancelled)));
    assert_eq!(seen, [100, 200, 300]);
}

#[test]
fn a_wrong_argument_is_an_error() {
    let wrong = |options: WriteOptions| {
        let generator = TableGenerator::new(CITIES, 5).expect("the schema is valid");
        let written = write_test_data(&generator, 0, 1, io::sink(), &options, &mut |_| true);
        written.expect_err("the options are wrong").to_string()
    };
    let defaults = WriteOptions::default();
    assert_eq!(
        wrong(WriteOptions { rows_per_group: 0, ..defaults.clone() }),
        "a row group has at least 1 row"
    );
    assert_eq!(
        wrong(WriteOptions { compression_level: 23, ..defaults }),
        "the zstd level 23 is not from 1 to 22"
    );
    let none = write_parquet_batch(&[], &scratch("none.parquet"), &WriteOptions::default());
    assert_eq!(none.expect_err("there is no batch").to_string(), "there is no batch to write");
}

#[test]
fn a_file_that_cannot_be_created_is_an_error() {
    let batches: Vec<RecordBatch> = generate_test_data(1, 5, CITIES).expect("the schema is valid").collect();
    let error = write_parquet_batch(&batches, &scratch("no/such/rows.parquet"), &WriteOptions::default());
    let message = error.expect_err("the folder does not exist").to_string();
    assert!(message.contains("no/such/rows.parquet` cannot be written"), "{message}");
}

/// A sink that is full after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("no space left"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let generator = TableGenerator::new(CITIES, 5).expect("the schema is valid");
    for room in [0, 2_000] {
        let result =
            write_test_data(&generator, 0, 100_000, Full(room), &WriteOptions::default(), &mut |_| true);
        let message = result.expect_err("the disk is full").to_string();
        assert!(message.contains("no space left"), "{message}");
    }
}
