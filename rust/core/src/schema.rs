//! The reader of Iceberg's schema JSON (specification, "Appendix C: JSON serialization").

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::errors::Error;

/// Nested types below this depth are refused; every level is a call on the stack.
const MAX_DEPTH: usize = 32;
const MAX_FIXED_BYTES: i32 = 65_536;

/// A column, a field of a struct, or the element, key or value of a list or map.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub id: i32,
    pub name: String,
    pub is_required: bool,
    /// Whether the schema lists it among its identifier fields.
    pub is_identifier: bool,
    pub data_type: Type,
}

/// An Iceberg type that has test data.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: i8,
    },
    Date,
    Time,
    /// With microseconds or nanoseconds, and with or without a zone.
    Timestamp {
        is_nanosecond: bool,
        has_zone: bool,
    },
    String,
    Uuid,
    Fixed(i32),
    Binary,
    Struct(Vec<Field>),
    List(Box<Field>),
    Map(Box<Field>, Box<Field>),
}

/// The columns of a schema.  Columns of the type `unknown`, which files do not store, are left out.
pub fn read_schema(text: &str) -> Result<Vec<Field>, Error> {
    let json: Value = serde_json::from_str(text)
        .map_err(|error| Error::Schema(format!("the schema is not JSON: {error}")))?;
    let root = json.as_object().ok_or_else(|| Error::Schema("the schema is not a JSON object".into()))?;
    let mut identifiers = HashSet::new();
    if let Some(ids) = root.get("identifier-field-ids").filter(|ids| !ids.is_null()) {
        let list = ids.as_array().ok_or_else(|| wrong("", "`identifier-field-ids` is not a list"))?;
        for id in list {
            identifiers
                .insert(id.as_i64().ok_or_else(|| wrong("", "an identifier field id is not an integer"))?);
        }
    }
    let fields = struct_fields(root, "", &identifiers, 0)?;
    if fields.is_empty() {
        return Err(Error::Schema("the schema has no column that a file stores".into()));
    }
    Ok(fields)
}

fn struct_fields(
    json: &Map<String, Value>,
    path: &str,
    identifiers: &HashSet<i64>,
    depth: usize,
) -> Result<Vec<Field>, Error> {
    let list =
        json.get("fields").and_then(Value::as_array).ok_or_else(|| wrong(path, "`fields` is not a list"))?;
    let mut names = HashSet::new();
    let mut fields = Vec::with_capacity(list.len());
    for item in list {
        let object = item.as_object().ok_or_else(|| wrong(path, "a field is not an object"))?;
        let name =
            object.get("name").and_then(Value::as_str).ok_or_else(|| wrong(path, "a field has no name"))?;
        if !names.insert(name) {
            return Err(wrong(path, &format!("two fields have the name `{name}`")));
        }
        let is_required = match object.get("required") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => return Err(wrong(&joined(path, name), "`required` is not true or false")),
        };
        if object.get("type").and_then(Value::as_str) != Some("unknown") {
            fields.push(field(object, ["id", "type"], name, is_required, path, identifiers, depth)?);
        }
    }
    Ok(fields)
}

/// A field of an object with the given keys for its id and its type.
fn field(
    json: &Map<String, Value>,
    keys: [&str; 2],
    name: &str,
    is_required: bool,
    parent: &str,
    identifiers: &HashSet<i64>,
    depth: usize,
) -> Result<Field, Error> {
    let path = joined(parent, name);
    let [id_key, type_key] = keys;
    let number = json
        .get(id_key)
        .and_then(Value::as_i64)
        .ok_or_else(|| wrong(&path, "the field id is not an integer"))?;
    let id =
        i32::try_from(number).map_err(|_| wrong(&path, &format!("the field id {number} is out of range")))?;
    let data_type = json.get(type_key).ok_or_else(|| wrong(&path, "the field has no type"))?;
    let data_type = read_type(data_type, &path, identifiers, depth + 1)?;
    Ok(Field {
        id,
        name: name.to_owned(),
        is_required,
        is_identifier: identifiers.contains(&number),
        data_type,
    })
}

fn read_type(json: &Value, path: &str, identifiers: &HashSet<i64>, depth: usize) -> Result<Type, Error> {
    if depth > MAX_DEPTH {
        return Err(wrong(path, &format!("types are nested more than {MAX_DEPTH} levels deep")));
    }
    let object = match json {
        Value::String(text) => return primitive(text, path),
        Value::Object(object) => object,
        _ => return Err(wrong(path, "the type is not a string or an object")),
    };
    let nested = |keys, name: &str, is_required| {
        field(object, keys, name, is_required, path, identifiers, depth).map(Box::new)
    };
    match object.get("type").and_then(Value::as_str) {
        Some("struct") => {
            let fields = struct_fields(object, path, identifiers, depth)?;
            if fields.is_empty() {
                return Err(wrong(path, "the struct has no field that a file stores"));
            }
            Ok(Type::Struct(fields))
        }
        Some("list") => Ok(Type::List(nested(
            ["element-id", "element"],
            "element",
            flag(object, "element-required", path)?,
        )?)),
        Some("map") => Ok(Type::Map(
            nested(["key-id", "key"], "key", true)?,
            nested(["value-id", "value"], "value", flag(object, "value-required", path)?)?,
        )),
        Some(other) => Err(unknown_type(other, path)),
        None => Err(wrong(path, "the type has no `type`")),
    }
}

fn flag(json: &Map<String, Value>, key: &str, path: &str) -> Result<bool, Error> {
    json.get(key)
        .and_then(Value::as_bool)
        .ok_or_else(|| wrong(path, &format!("`{key}` is not true or false")))
}

fn primitive(text: &str, path: &str) -> Result<Type, Error> {
    Ok(match text {
        "boolean" => Type::Boolean,
        "int" => Type::Int,
        "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "date" => Type::Date,
        "time" => Type::Time,
        "timestamp" => Type::Timestamp { is_nanosecond: false, has_zone: false },
        "timestamptz" => Type::Timestamp { is_nanosecond: false, has_zone: true },
        "timestamp_ns" => Type::Timestamp { is_nanosecond: true, has_zone: false },
        "timestamptz_ns" => Type::Timestamp { is_nanosecond: true, has_zone: true },
        "string" => Type::String,
        "uuid" => Type::Uuid,
        "binary" => Type::Binary,
        _ => return parameterised(text, path),
    })
}

fn parameterised(text: &str, path: &str) -> Result<Type, Error> {
    if let Some(inner) = text.strip_prefix("fixed[").and_then(|rest| rest.strip_suffix(']')) {
        let length = inner.trim().parse::<i32>().ok().filter(|length| (1..=MAX_FIXED_BYTES).contains(length));
        return length.map(Type::Fixed).ok_or_else(|| {
            wrong(path, &format!("`{text}` has no length from 1 to {MAX_FIXED_BYTES} bytes"))
        });
    }
    if let Some(inner) = text.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) {
        let numbers = inner.split_once(',').and_then(|(precision, scale)| {
            Some((precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?))
        });
        return match numbers {
            Some((precision @ 1..=38, scale)) if scale >= 0 && scale as u8 <= precision => {
                Ok(Type::Decimal { precision, scale })
            }
            _ => Err(wrong(
                path,
                &format!("`{text}` has no precision from 1 to 38 and scale up to the precision"),
            )),
        };
    }
    Err(unknown_type(text, path))
}

fn unknown_type(text: &str, path: &str) -> Error {
    wrong(path, &format!("there is no test data for the type `{text}`"))
}

fn wrong(path: &str, problem: &str) -> Error {
    Error::Schema(if path.is_empty() { problem.to_owned() } else { format!("column `{path}`: {problem}") })
}

pub(crate) fn joined(parent: &str, name: &str) -> String {
    if parent.is_empty() {
        name.to_owned()
    } else {
        format!("{parent}.{name}")
    }
}
