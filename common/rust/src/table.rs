//! A Parquet file of text columns, as pandas writes one: for data sets that are made here.

use crate::border::{borrowed, borrowed_text, guarded, Bytes};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::sync::Arc;

type Column = (String, Vec<Option<String>>);

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn write(path: &str, columns: Vec<Column>) -> Result<(), String> {
    let fields: Vec<Field> = columns.iter().map(|(name, _)| Field::new(name, DataType::Utf8, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, texts)| Arc::new(StringArray::from(texts)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(words)?;
    let file = File::create(path).map_err(words)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(words)?;
    writer.write(&batch).map_err(words)?;
    let file = writer.into_inner().map_err(words)?;
    file.sync_all().map_err(words)
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_table_write(
    path: *const u8,
    path_size: usize,
    columns: *const u8,
    size: usize,
    error: *mut Bytes,
) -> bool {
    let written = guarded(error, || {
        let columns: Vec<Column> = serde_json::from_slice(borrowed(columns, size)).map_err(words)?;
        write(borrowed_text(path, path_size)?, columns)
    });
    written.is_some()
}
