//! The Python module `icemigrate_native`.

use std::fs::File;
use std::io::{self, BufWriter};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};

use icemigrate_core::{write_test_data, Error, TableGenerator, WriteOptions};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

const BUFFER_BYTES: usize = 1 << 20;

fn python_error(error: Error) -> PyErr {
    match error {
        Error::Output(message) => PyOSError::new_err(message),
        Error::Schema(message) | Error::Argument(message) => PyValueError::new_err(message),
        Error::Cancelled => PyKeyboardInterrupt::new_err(error.to_string()),
    }
}

/// A duplicate of a descriptor that Python keeps open.
fn duplicate(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the descriptor is negative"));
    }
    // SAFETY: the descriptor is only duplicated here, and never closed.
    let borrowed = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    borrowed.try_clone()
}

/// Write rows of test data as a Parquet file to an open file descriptor.
///
/// After each row group, `report` gets the number of rows that are written; an exception of it ends the work, and
/// so does a signal with a Python handler.
///
/// Raises ValueError for a schema or an argument that is wrong, and OSError for a file that cannot be written.
#[pyfunction]
#[pyo3(signature = (schema, descriptor, *, first_row, rows, seed, rows_per_group, threads=0, bloom_filters=vec![], report=None))]
#[allow(clippy::too_many_arguments)]
fn write_parquet(
    python: Python<'_>,
    schema: &str,
    descriptor: RawFd,
    first_row: u64,
    rows: u64,
    seed: u64,
    rows_per_group: usize,
    threads: usize,
    bloom_filters: Vec<String>,
    report: Option<Py<PyAny>>,
) -> PyResult<()> {
    let options = WriteOptions { rows_per_group, threads, bloom_filters, ..WriteOptions::default() };
    let mut raised = None;
    let written = python.detach(|| {
        let generator = TableGenerator::new(schema, seed)?;
        let sink = duplicate(descriptor).map_err(|error| Error::Output(error.to_string()))?;
        let sink = BufWriter::with_capacity(BUFFER_BYTES, sink);
        write_test_data(&generator, first_row, rows, sink, &options, &mut |done| {
            raised = Python::attach(|python| {
                python.check_signals()?;
                report.as_ref().map(|report| report.call1(python, (done,))).transpose().map(|_| ())
            })
            .err();
            raised.is_none()
        })
    });
    match raised {
        Some(error) => Err(error),
        None => written.map_err(python_error),
    }
}

#[pymodule]
fn icemigrate_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(write_parquet, module)?)
}
