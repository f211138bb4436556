//! The columns of a schema as generators of Arrow arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, MapArray, RecordBatch, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::extension::Uuid;
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::byte_strings::{binaries, fixed, uuids};
use crate::counter::{below, ColumnKey};
use crate::draws::{Draws, SLOTS};
use crate::errors::Error;
use crate::numbers::{booleans, NumberSource};
use crate::schema::{joined, read_schema, Field, Type};
use crate::text::{strings, TextSource};
use crate::times::{dates, nanosecond_timestamps, times, timestamps, TimeSource};
use crate::vocabulary::VOCABULARY;

const MAX_LIST_LENGTH: u64 = 4;
const MAX_MAP_ENTRIES: u64 = 3;

/// The generator of a schema's columns.
pub struct TableGenerator {
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl TableGenerator {
    /// The generator of a schema in Iceberg's JSON form.
    pub fn new(schema: &str, seed: u64) -> Result<Self, Error> {
        let columns: Vec<Column> =
            read_schema(schema)?.into_iter().map(|field| Column::new(field, "", seed, false)).collect();
        let fields: Fields = columns.iter().map(|column| column.arrow.clone()).collect();
        Ok(Self { columns, schema: Arc::new(ArrowSchema::new(fields)) })
    }

    /// The Arrow schema of the batches; each field has its Iceberg field id in its metadata.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows from `first` on, `count` of them.
    pub fn batch(&self, first: u64, count: usize) -> RecordBatch {
        let indices: Vec<u64> = (0..count as u64).map(|offset| first.wrapping_add(offset)).collect();
        let arrays = self.columns.iter().map(|column| column.generate(&indices)).collect();
        RecordBatch::try_new(self.schema.clone(), arrays).expect("the generators follow the schema")
    }
}

struct Column {
    arrow: Arc<ArrowField>,
    key: ColumnKey,
    is_required: bool,
    values: Values,
}

/// How a column's values are made, by its type.
enum Values {
    Boolean(NumberSource),
    Int(NumberSource),
    Long(NumberSource),
    Float(NumberSource),
    Double(NumberSource),
    Decimal(NumberSource, u8, i8),
    Date(TimeSource),
    Time(TimeSource),
    Timestamp { source: TimeSource, is_nanosecond: bool, has_zone: bool },
    String(TextSource),
    Uuid(NumberSource),
    Fixed(NumberSource, i32),
    Binary(NumberSource),
    Struct(Vec<Column>),
    List(Box<Column>),
    Map { key: Box<Column>, value: Box<Column>, most_entries: u64 },
}

impl Column {
    fn new(field: Field, parent: &str, seed: u64, is_map_key: bool) -> Self {
        let path = joined(parent, &field.name);
        let key = ColumnKey::new(seed, &path);
        let sources = Sources::of(&field, is_map_key);
        let values = match field.data_type {
            Type::Boolean => Values::Boolean(sources.number),
            Type::Int => Values::Int(sources.number),
            Type::Long => Values::Long(sources.number),
            Type::Float => Values::Float(sources.number),
            Type::Double => Values::Double(sources.number),
            Type::Decimal { precision, scale } => Values::Decimal(sources.number, precision, scale),
            Type::Date => Values::Date(sources.time),
            Type::Time => Values::Time(sources.time),
            Type::Timestamp { is_nanosecond, has_zone } => {
                Values::Timestamp { source: sources.time, is_nanosecond, has_zone }
            }
            Type::String => Values::String(sources.text),
            Type::Uuid => Values::Uuid(sources.number),
            Type::Fixed(length) => Values::Fixed(sources.number, length),
            Type::Binary => Values::Binary(sources.number),
            Type::Struct(fields) => {
                Values::Struct(fields.into_iter().map(|inner| Self::new(inner, &path, seed, false)).collect())
            }
            Type::List(element) => Values::List(Box::new(Self::new(*element, &path, seed, false))),
            Type::Map(key_field, value_field) => {
                let most_entries = most_entries(&key_field.data_type);
                let key = Box::new(Self::new(*key_field, &path, seed, true));
                Values::Map {
                    key,
                    value: Box::new(Self::new(*value_field, &path, seed, false)),
                    most_entries,
                }
            }
        };
        let arrow = Arc::new(arrow_field(&field.name, field.id, field.is_required, &values));
        Self { arrow, key, is_required: field.is_required, values }
    }

    fn generate(&self, indices: &[u64]) -> ArrayRef {
        let draws = Draws { key: self.key, indices };
        let nulls = draws.validity(self.is_required);
        match &self.values {
            Values::Boolean(source) => booleans(*source, draws, nulls),
            Values::Int(source) => source.ints(draws, nulls),
            Values::Long(source) => source.longs(draws, nulls),
            Values::Float(source) => source.floats(draws, nulls),
            Values::Double(source) => source.doubles(draws, nulls),
            Values::Decimal(source, precision, scale) => source.decimals(draws, nulls, *precision, *scale),
            Values::Date(source) => dates(*source, draws, nulls),
            Values::Time(source) => times(*source, draws, nulls),
            Values::Timestamp { source, is_nanosecond: false, has_zone } => {
                timestamps(*source, draws, nulls, *has_zone)
            }
            Values::Timestamp { source, is_nanosecond: true, has_zone } => {
                nanosecond_timestamps(*source, draws, nulls, *has_zone)
            }
            Values::String(source) => strings(*source, draws, nulls),
            Values::Uuid(source) => uuids(*source, draws, nulls),
            Values::Fixed(source, length) => fixed(*source, draws, nulls, *length),
            Values::Binary(source) => binaries(*source, draws, nulls),
            Values::Struct(columns) => {
                let arrays = columns.iter().map(|column| column.generate(indices)).collect();
                Arc::new(StructArray::new(fields_of(columns), arrays, nulls))
            }
            Values::List(element) => {
                let (offsets, inner) = slots(draws, nulls.as_ref(), MAX_LIST_LENGTH);
                Arc::new(ListArray::new(element.arrow.clone(), offsets, element.generate(&inner), nulls))
            }
            Values::Map { key, value, most_entries } => {
                let (offsets, inner) = slots(draws, nulls.as_ref(), *most_entries);
                let arrays = vec![key.generate(&inner), value.generate(&inner)];
                let entries = StructArray::new(entry_fields(key, value), arrays, None);
                Arc::new(MapArray::new(entries_field(key, value), offsets, entries, nulls, false))
            }
        }
    }
}

/// The offsets of lists or maps, and the indices of their elements: a list has up to `most` elements.
fn slots(draws: Draws<'_>, nulls: Option<&NullBuffer>, most: u64) -> (OffsetBuffer<i32>, Vec<u64>) {
    let mut lengths = Vec::with_capacity(draws.indices.len());
    let mut inner = Vec::new();
    for (row, (&index, bits)) in draws.indices.iter().zip(draws.bits(1)).enumerate() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        let length = if is_null { 0 } else { below(bits, most + 1) };
        lengths.push(length as usize);
        inner.extend((0..length).map(|position| index.wrapping_mul(SLOTS).wrapping_add(position)));
    }
    (OffsetBuffer::from_lengths(lengths), inner)
}

/// How many entries a map can have with keys that differ.
fn most_entries(key: &Type) -> u64 {
    match key {
        Type::Boolean => 2,
        Type::Struct(_) | Type::List(_) | Type::Map(..) => 1,
        _ => MAX_MAP_ENTRIES,
    }
}

/// The source of a column's values for each kind of type.
struct Sources {
    number: NumberSource,
    time: TimeSource,
    text: TextSource,
}

impl Sources {
    fn of(field: &Field, is_map_key: bool) -> Self {
        if is_map_key {
            return Self {
                number: NumberSource::KeyOrdinal,
                time: TimeSource::KeyOrdinal,
                text: TextSource::MapKey,
            };
        }
        if field.is_identifier || field.name == "id" {
            return Self { number: NumberSource::Index, time: TimeSource::Index, text: TextSource::Index };
        }
        let meaning = VOCABULARY.meaning_of(&field.name);
        let time = if meaning == Some("birth_date") { TimeSource::BirthDate } else { TimeSource::Arrival };
        Self {
            number: NumberSource::Range(VOCABULARY.numbers_of(meaning)),
            time,
            text: TextSource::of_meaning(meaning),
        }
    }
}

fn arrow_field(name: &str, id: i32, is_required: bool, values: &Values) -> ArrowField {
    let field = ArrowField::new(name, arrow_type(values), !is_required);
    let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
    let field = field.with_metadata(id);
    if matches!(values, Values::Uuid(_)) {
        field.with_extension_type(Uuid)
    } else {
        field
    }
}

fn arrow_type(values: &Values) -> DataType {
    match values {
        Values::Boolean(_) => DataType::Boolean,
        Values::Int(_) => DataType::Int32,
        Values::Long(_) => DataType::Int64,
        Values::Float(_) => DataType::Float32,
        Values::Double(_) => DataType::Float64,
        Values::Decimal(_, precision, scale) => DataType::Decimal128(*precision, *scale),
        Values::Date(_) => DataType::Date32,
        Values::Time(_) => DataType::Time64(TimeUnit::Microsecond),
        Values::Timestamp { is_nanosecond, has_zone, .. } => {
            let unit = if *is_nanosecond { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
            DataType::Timestamp(unit, has_zone.then(|| "UTC".into()))
        }
        Values::String(_) => DataType::Utf8,
        Values::Uuid(_) => DataType::FixedSizeBinary(16),
        Values::Fixed(_, length) => DataType::FixedSizeBinary(*length),
        Values::Binary(_) => DataType::Binary,
        Values::Struct(columns) => DataType::Struct(fields_of(columns)),
        Values::List(element) => DataType::List(element.arrow.clone()),
        Values::Map { key, value, .. } => DataType::Map(entries_field(key, value), false),
    }
}

fn fields_of(columns: &[Column]) -> Fields {
    columns.iter().map(|column| column.arrow.clone()).collect()
}

fn entry_fields(key: &Column, value: &Column) -> Fields {
    [key.arrow.clone(), value.arrow.clone()].into_iter().collect()
}

/// The entries of a map, under the name of Parquet's specification.
fn entries_field(key: &Column, value: &Column) -> Arc<ArrowField> {
    Arc::new(ArrowField::new("key_value", DataType::Struct(entry_fields(key, value)), false))
}
