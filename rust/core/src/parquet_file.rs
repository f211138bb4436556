//! Parquet files with Iceberg's field ids: row groups are generated and encoded by several threads at once, and
//! written in order.
//!
//! Each thread works on one row group and has at most one finished one waiting, so that memory depends on the
//! number of threads and the size of a row group, not on the number of rows.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{
    compute_leaves, ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::columns::TableGenerator;
use crate::errors::Error;

/// A dictionary of this size at most: larger ones cost time and save little.
const DICTIONARY_BYTES: usize = 65_536;

/// How a file is written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Rows of each row group; the last one may have fewer.
    pub rows_per_group: usize,
    /// Threads that generate and encode; 0 for one for each core.
    pub threads: usize,
    /// Level of zstd, from 1 to 22.
    pub compression_level: i32,
    /// Paths of the leaf columns that get a bloom filter, such as `address.city`.
    pub bloom_filters: Vec<String>,
}

/// More threads than this use more memory than they save time.
const MAX_THREADS: usize = 8;

impl Default for WriteOptions {
    fn default() -> Self {
        Self { rows_per_group: 131_072, threads: 0, compression_level: 1, bloom_filters: Vec::new() }
    }
}

impl WriteOptions {
    fn thread_count(&self) -> usize {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        if self.threads == 0 {
            cores.min(MAX_THREADS)
        } else {
            self.threads.min(MAX_THREADS)
        }
    }

    fn properties(&self) -> Result<WriterProperties, Error> {
        if self.rows_per_group == 0 {
            return Err(Error::Argument("a row group has at least 1 row".into()));
        }
        let level = ZstdLevel::try_new(self.compression_level).map_err(|_| {
            Error::Argument(format!("the zstd level {} is not from 1 to 22", self.compression_level))
        })?;
        let mut builder = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("icemigrate ", env!("CARGO_PKG_VERSION")).to_owned());
        for path in &self.bloom_filters {
            let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
            builder = builder
                .set_column_bloom_filter_max_ndv(ColumnPath::new(parts.clone()), self.rows_per_group as u64)
                .set_column_bloom_filter_enabled(ColumnPath::new(parts), true);
        }
        Ok(builder.build())
    }
}

/// Write batches that exist already to a new file, one row group for each.
pub fn write_parquet_batch(
    batches: &[RecordBatch],
    path: &Path,
    options: &WriteOptions,
) -> Result<(), Error> {
    let first = batches.first().ok_or_else(|| Error::Argument("there is no batch to write".into()))?;
    if batches.iter().any(|batch| batch.schema() != first.schema()) {
        return Err(Error::Argument("the batches have different schemas".into()));
    }
    options.properties()?;
    let named =
        |error: &dyn Display| Error::Output(format!("`{}` cannot be written: {error}", path.display()));
    let file = BufWriter::new(File::create(path).map_err(|error| named(&error))?);
    let batch_of = |group: usize| batches[group].clone();
    write_groups(&first.schema(), batches.len(), file, options, &batch_of, &mut |_| true)
        .map_err(|error| named(&error))
}

/// Generate rows and write them; the sink is flushed at the end.
///
/// After each row group, `proceed` gets the number of rows that are written; if it returns false, the rest is not
/// written and the result is [`Error::Cancelled`].
pub fn write_test_data<W: Write + Send>(
    generator: &TableGenerator,
    first_row: u64,
    rows: u64,
    sink: W,
    options: &WriteOptions,
    proceed: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Error> {
    if rows == 0 {
        return Err(Error::Argument("the number of rows is less than 1".into()));
    }
    options.properties()?;
    let size = options.rows_per_group as u64;
    let too_many = |_| Error::Argument("there are too many rows".into());
    let groups = usize::try_from(rows.div_ceil(size)).map_err(too_many)?;
    let batch_of = |group: usize| {
        let offset = group as u64 * size;
        generator.batch(first_row.wrapping_add(offset), (rows - offset).min(size) as usize)
    };
    let mut proceed_after = |group: usize| proceed(rows.min((group as u64 + 1) * size));
    write_groups(generator.schema(), groups, sink, options, &batch_of, &mut proceed_after)
}

type EncodedGroup = Result<Vec<ArrowColumnChunk>, Error>;

fn output_error(error: impl Display) -> Error {
    Error::Output(error.to_string())
}

fn write_groups<W: Write + Send>(
    schema: &SchemaRef,
    groups: usize,
    sink: W,
    options: &WriteOptions,
    batch_of: &(dyn Fn(usize) -> RecordBatch + Sync),
    proceed_after: &mut dyn FnMut(usize) -> bool,
) -> Result<(), Error> {
    // Arrow's schema is left out: Iceberg's field ids and Parquet's types say all of it.
    let settings =
        ArrowWriterOptions::new().with_properties(options.properties()?).with_skip_arrow_metadata(true);
    let writer = ArrowWriter::try_new_with_options(sink, schema.clone(), settings).map_err(output_error)?;
    let (mut writer, factory) = writer.into_serialized_writer().map_err(output_error)?;
    let threads = options.thread_count().clamp(1, groups.max(1));
    thread::scope(|scope| {
        let mut finished: Vec<Receiver<EncodedGroup>> = Vec::with_capacity(threads);
        for thread in 0..threads {
            let (sender, receiver) = sync_channel(1);
            let factory = &factory;
            let own_groups = (thread..groups).step_by(threads);
            scope.spawn(move || encode_groups(own_groups, schema, factory, batch_of, &sender));
            finished.push(receiver);
        }
        for group in 0..groups {
            let chunks =
                finished[group % threads].recv().map_err(|_| output_error("a thread ended early"))??;
            append_group(&mut writer, chunks).map_err(output_error)?;
            if !proceed_after(group) {
                return Err(Error::Cancelled);
            }
        }
        Ok::<(), Error>(())
    })?;
    writer.into_inner().map_err(output_error)?.flush().map_err(output_error)
}

/// Encode row groups until the last one, or until the receiver is closed after an error.
fn encode_groups(
    groups: impl Iterator<Item = usize>,
    schema: &SchemaRef,
    factory: &ArrowRowGroupWriterFactory,
    batch_of: &(dyn Fn(usize) -> RecordBatch + Sync),
    sender: &SyncSender<EncodedGroup>,
) {
    for group in groups {
        let encoded = encode_group(group, &batch_of(group), schema, factory);
        if sender.send(encoded).is_err() {
            return;
        }
    }
}

fn encode_group(
    group: usize,
    batch: &RecordBatch,
    schema: &SchemaRef,
    factory: &ArrowRowGroupWriterFactory,
) -> EncodedGroup {
    let failed = |error| Error::Output(format!("row group {group} cannot be encoded: {error}"));
    let mut writers = factory.create_column_writers(group).map_err(failed)?.into_iter();
    let mut chunks = Vec::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        for leaf in compute_leaves(field, array).map_err(failed)? {
            let mut writer = writers.next().expect("each leaf has a writer");
            writer.write(&leaf).map_err(failed)?;
            chunks.push(writer.close().map_err(failed)?);
        }
    }
    Ok(chunks)
}

fn append_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    chunks: Vec<ArrowColumnChunk>,
) -> parquet::errors::Result<()> {
    let mut group = writer.next_row_group()?;
    for chunk in chunks {
        chunk.append_to_row_group(&mut group)?;
    }
    group.close().map(|_| ())
}
