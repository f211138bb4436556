//! The errors of the crate, each with a message that a user understands.

use std::fmt;

/// Why no data can be generated or written.
#[derive(Debug)]
pub enum Error {
    /// The schema is not Iceberg's JSON form, or has a type without test data.
    Schema(String),
    /// An argument is out of its range.
    Argument(String),
    /// A file cannot be written.
    Output(String),
    /// The caller ended the work.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Schema(message) | Self::Argument(message) | Self::Output(message) => message,
            Self::Cancelled => "the work was cancelled",
        })
    }
}

impl std::error::Error for Error {}
