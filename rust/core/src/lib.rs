//! Reproducible test data for Iceberg tables, and Parquet files with Iceberg's field ids.
//!
//! A value depends on the seed, its column's path and its row alone, so that rows can be made in any order and by
//! any number of threads.  `docs/test-data.md` has the rules; `icemigrate.test_data` follows them in Python.

mod byte_strings;
mod columns;
mod counter;
mod draws;
mod errors;
mod numbers;
mod parquet_file;
mod schema;
mod text;
mod times;
mod vocabulary;

use arrow_array::RecordBatch;

pub use columns::TableGenerator;
pub use errors::Error;
pub use parquet_file::{write_parquet_batch, write_test_data, WriteOptions};
pub use schema::{read_schema, Field, Type};

/// The rows of one batch of [`generate_test_data`], and of one row group.
pub const BATCH_ROWS: usize = 131_072;

/// Rows for the columns of a schema in Iceberg's JSON form, in batches of [`BATCH_ROWS`].
///
/// An error in the schema, or fewer than one row, is reported before the first batch is made.
pub fn generate_test_data(
    rows: u64,
    seed: u64,
    schema: &str,
) -> Result<impl Iterator<Item = RecordBatch>, Error> {
    if rows == 0 {
        return Err(Error::Argument("the number of rows is less than 1".into()));
    }
    let generator = TableGenerator::new(schema, seed)?;
    let size = BATCH_ROWS as u64;
    Ok((0..rows.div_ceil(size)).map(move |batch| {
        let first = batch * size;
        generator.batch(first, (rows - first).min(size) as usize)
    }))
}
