//! Rows of Parquet files and Arrow streams, as lines of JSON.

use crate::border::{borrowed, borrowed_text, closed, guarded, opened, Bytes};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::ProjectionMask;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Rows decoded at once, and lines handed over at once.
const BATCH_ROWS: usize = 1024;
const LINES_ROWS: usize = 256;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>>>;

pub struct Rows {
    file: File,
    is_parquet: bool,
    schema: SchemaRef,
    batches: Option<Batches>,
    batch: Option<RecordBatch>,
    at: usize,
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Rows {
    fn open(path: &str) -> Result<Rows, String> {
        let mut file = File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
        let mut magic = [0u8; 4];
        let is_parquet = file.read_exact(&mut magic).is_ok() && &magic == b"PAR1";
        let mut rows = Rows { file, is_parquet, schema: SchemaRef::new(arrow_schema::Schema::empty()), batches: None, batch: None, at: 0 };
        let again = rows.rewound()?;
        rows.schema = if is_parquet {
            ParquetRecordBatchReaderBuilder::try_new(again).map_err(words)?.schema().clone()
        } else {
            StreamReader::try_new(BufReader::new(again), None)
                .map_err(|e| format!("neither a Parquet file nor an Arrow stream: {e}"))?
                .schema()
        };
        Ok(rows)
    }

    fn rewound(&self) -> Result<File, String> {
        let mut file = self.file.try_clone().map_err(words)?;
        file.seek(SeekFrom::Start(0)).map_err(words)?;
        Ok(file)
    }

    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|f| f.name().as_str()).collect()
    }

    fn choose(&mut self, wanted: &[String]) -> Result<(), String> {
        let mut places = Vec::new();
        for (i, field) in self.schema.fields().iter().enumerate() {
            if wanted.contains(field.name()) {
                check(field.data_type())
                    .map_err(|what| format!("column '{}' holds {what}, which is not read", field.name()))?;
                places.push(i);
            }
        }
        let file = self.rewound()?;
        self.batches = Some(if self.is_parquet {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(words)?;
            let mask = ProjectionMask::roots(builder.parquet_schema(), places);
            let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build().map_err(words)?;
            Box::new(reader.map(|b| b.map_err(words)))
        } else {
            let reader = StreamReader::try_new(BufReader::new(file), Some(places)).map_err(words)?;
            Box::new(reader.map(|b| b.map_err(words)))
        });
        Ok(())
    }

    /// The next lines; none at the end.
    fn next(&mut self) -> Result<Vec<u8>, String> {
        let batches = self.batches.as_mut().ok_or("no columns were chosen")?;
        let batch = loop {
            match self.batch.take() {
                Some(batch) if self.at < batch.num_rows() => break batch,
                _ => {}
            }
            match batches.next() {
                None => return Ok(Vec::new()),
                Some(batch) => self.batch = Some(batch?),
            }
            self.at = 0;
        };
        let end = batch.num_rows().min(self.at + LINES_ROWS);
        let mut out = Vec::new();
        let keys = keys_of(batch.schema().fields().iter().map(|f| f.name().as_str()));
        for row in self.at..end {
            object(&mut out, &keys, batch.columns(), row)?;
            out.push(b'\n');
        }
        self.at = end;
        self.batch = Some(batch);
        Ok(out)
    }
}

/// What a type is called when it cannot be told in JSON without a guess.
fn check(kind: &DataType) -> Result<(), String> {
    use DataType::*;
    match kind {
        Null | Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float16
        | Float32 | Float64 | Utf8 | LargeUtf8 | Utf8View => Ok(()),
        List(item) | LargeList(item) | FixedSizeList(item, _) => check(item.data_type()),
        Struct(fields) => fields.iter().try_for_each(|f| check(f.data_type())),
        Dictionary(_, value) => check(value),
        other => Err(format!("values of type {other}")),
    }
}

fn keys_of<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Vec<u8>> {
    names
        .enumerate()
        .map(|(i, name)| {
            let mut key = if i == 0 { Vec::new() } else { vec![b','] };
            text(&mut key, name);
            key.push(b':');
            key
        })
        .collect()
}

fn object(out: &mut Vec<u8>, keys: &[Vec<u8>], columns: &[ArrayRef], row: usize) -> Result<(), String> {
    out.push(b'{');
    for (key, column) in keys.iter().zip(columns) {
        out.extend_from_slice(key);
        value(out, column, row)?;
    }
    out.push(b'}');
    Ok(())
}

fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("text is JSON");
}

fn float(out: &mut Vec<u8>, number: f64) -> Result<(), String> {
    if number.is_infinite() {
        return Err("an infinite number, which JSON cannot hold".into());
    }
    // A NaN is how these files write a missing number.
    serde_json::to_writer(out, &number).map_err(words)
}

fn items(out: &mut Vec<u8>, items: &ArrayRef) -> Result<(), String> {
    out.push(b'[');
    for i in 0..items.len() {
        if i > 0 {
            out.push(b',');
        }
        value(out, items, i)?;
    }
    out.push(b']');
    Ok(())
}

macro_rules! integer {
    ($out:expr, $array:expr, $kind:ty, $row:expr) => {
        serde_json::to_writer($out, &$array.as_primitive::<$kind>().value($row)).map_err(words)
    };
}

fn key(keys: &dyn Array, row: usize) -> Result<usize, String> {
    let key = match keys.data_type() {
        DataType::Int8 => i64::from(keys.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => i64::from(keys.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => i64::from(keys.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => keys.as_primitive::<Int64Type>().value(row),
        DataType::UInt8 => i64::from(keys.as_primitive::<UInt8Type>().value(row)),
        DataType::UInt16 => i64::from(keys.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt32 => i64::from(keys.as_primitive::<UInt32Type>().value(row)),
        other => return Err(format!("a dictionary with keys of type {other}")),
    };
    usize::try_from(key).map_err(words)
}

fn value(out: &mut Vec<u8>, array: &ArrayRef, row: usize) -> Result<(), String> {
    use DataType::*;
    if array.is_null(row) || array.data_type() == &Null {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match array.data_type() {
        Boolean => out.extend_from_slice(if array.as_boolean().value(row) { b"true" } else { b"false" }),
        Int8 => integer!(out, array, Int8Type, row)?,
        Int16 => integer!(out, array, Int16Type, row)?,
        Int32 => integer!(out, array, Int32Type, row)?,
        Int64 => integer!(out, array, Int64Type, row)?,
        UInt8 => integer!(out, array, UInt8Type, row)?,
        UInt16 => integer!(out, array, UInt16Type, row)?,
        UInt32 => integer!(out, array, UInt32Type, row)?,
        UInt64 => integer!(out, array, UInt64Type, row)?,
        Float16 => float(out, array.as_primitive::<Float16Type>().value(row).to_f64())?,
        Float32 => float(out, f64::from(array.as_primitive::<Float32Type>().value(row)))?,
        Float64 => float(out, array.as_primitive::<Float64Type>().value(row))?,
        Utf8 => text(out, array.as_string::<i32>().value(row)),
        LargeUtf8 => text(out, array.as_string::<i64>().value(row)),
        Utf8View => text(out, array.as_string_view().value(row)),
        List(_) => items(out, &array.as_list::<i32>().value(row))?,
        LargeList(_) => items(out, &array.as_list::<i64>().value(row))?,
        FixedSizeList(_, _) => items(out, &array.as_fixed_size_list().value(row))?,
        Struct(fields) => {
            let keys = keys_of(fields.iter().map(|f| f.name().as_str()));
            object(out, &keys, array.as_struct().columns(), row)?
        }
        Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            value(out, dictionary.values(), key(dictionary.keys(), row)?)?
        }
        other => return Err(format!("a value of type {other}")),
    }
    Ok(())
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_rows_open(path: *const u8, size: usize, error: *mut Bytes) -> *mut Rows {
    opened(error, || Rows::open(borrowed_text(path, size)?))
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_rows_close(rows: *mut Rows) {
    closed(rows);
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_rows_columns(rows: *const Rows, names: *mut Bytes, error: *mut Bytes) -> bool {
    let told = guarded(error, || serde_json::to_vec(&(*rows).columns()).map_err(words));
    told.map(|json| *names = Bytes::own(json)).is_some()
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_rows_choose(rows: *mut Rows, names: *const u8, size: usize, error: *mut Bytes) -> bool {
    let chosen = guarded(error, || {
        let wanted: Vec<String> = serde_json::from_slice(borrowed(names, size)).map_err(words)?;
        (*rows).choose(&wanted)
    });
    chosen.is_some()
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_rows_next(rows: *mut Rows, lines: *mut Bytes, error: *mut Bytes) -> bool {
    let read = guarded(error, || (*rows).next());
    read.map(|json| *lines = Bytes::own(json)).is_some()
}
