//! Chat templates: Jinja as the `transformers` library sets it up, rendered with Python's ways of
//! writing values.

use crate::border::{borrowed_text, closed, guarded, opened, Bytes};
use chrono::DateTime;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State};
use serde_json::Value as Json;
use std::fmt::Write;

const NAME: &str = "chat";

pub struct Template {
    env: Environment<'static>,
}

fn wrong(words: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, words.into())
}

/// Jinja2 templates of `transformers` may mark what the model wrote; the marks mean nothing here.
fn without_generation_marks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(from) = rest.find("{%") {
        let Some(to) = rest[from..].find("%}").map(|n| from + n + 2) else { break };
        let tag = &rest[from..to];
        let inner = &tag[2..tag.len() - 2];
        let word = inner.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        let swapped = match word {
            "generation" => inner.replace(word, "if true"),
            "endgeneration" => inner.replace(word, "endif"),
            _ => inner.to_string(),
        };
        out.push_str(&rest[..from]);
        out.push_str("{%");
        out.push_str(&swapped);
        out.push_str("%}");
        rest = &rest[to..];
    }
    out.push_str(rest);
    out
}

/// As Python's repr() of a float: the shortest digits that read back, with an exponent outside
/// 1e-4 … 1e16.
fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').expect("{:e} writes an exponent");
    let exponent: i32 = exponent.parse().expect("{:e} writes a number after its e");
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

fn python_string(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => _ = write!(out, "\\u{:04x}", c as u32),
            c if ascii && (c as u32) > 0x7E => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Dump {
    indent: Option<String>,
    item: String,
    key: String,
    ascii: bool,
    sort: bool,
}

impl Dump {
    fn line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    }

    fn write(&self, value: &Json, depth: usize, out: &mut String) {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Json::Number(n) => match n.as_f64() {
                Some(float) if n.is_f64() => out.push_str(&python_float(float)),
                _ => out.push_str(&n.to_string()),
            },
            Json::String(text) => python_string(text, self.ascii, out),
            Json::Array(items) if items.is_empty() => out.push_str("[]"),
            Json::Object(items) if items.is_empty() => out.push_str("{}"),
            Json::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(&self.item);
                    }
                    self.line(depth + 1, out);
                    self.write(item, depth + 1, out);
                }
                self.line(depth, out);
                out.push(']');
            }
            Json::Object(items) => {
                let mut members: Vec<_> = items.iter().collect();
                if self.sort {
                    members.sort_by_key(|(key, _)| *key);
                }
                out.push('{');
                for (i, (key, item)) in members.into_iter().enumerate() {
                    if i > 0 {
                        out.push_str(&self.item);
                    }
                    self.line(depth + 1, out);
                    python_string(key, self.ascii, out);
                    out.push_str(&self.key);
                    self.write(item, depth + 1, out);
                }
                self.line(depth, out);
                out.push('}');
            }
        }
    }
}

/// json.dumps(value, ensure_ascii=False) with the arguments that templates give.
fn tojson(value: Value, options: Kwargs) -> Result<Value, Error> {
    let indent = match options.get::<Option<Value>>("indent")? {
        None => None,
        Some(v) if v.is_none() || v.is_undefined() => None,
        Some(v) => Some(match v.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(usize::try_from(v).map_err(|_| wrong("tojson: indent is no number"))?),
        }),
    };
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    let dump = Dump {
        item: match &separators {
            Some(pair) => pair.first().cloned().unwrap_or_default(),
            None => if indent.is_some() { "," } else { ", " }.into(),
        },
        key: separators.and_then(|pair| pair.get(1).cloned()).unwrap_or_else(|| ": ".into()),
        indent,
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let json = serde_json::to_value(&value).map_err(|e| wrong(format!("tojson: {e}")))?;
    let mut out = String::new();
    dump.write(&json, 0, &mut out);
    Ok(Value::from_safe_string(out))
}

fn python_repr(value: &Value, out: &mut String) {
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            out.push(quote);
            for c in text.chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    c if c == quote => {
                        out.push('\\');
                        out.push(c);
                    }
                    c if (c as u32) < 0x20 || c as u32 == 0x7F => _ = write!(out, "\\x{:02x}", c as u32),
                    c => out.push(c),
                }
            }
            out.push(quote);
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (i, item) in value.try_iter().into_iter().flatten().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                python_repr(&item, out);
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter().into_iter().flatten().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                python_repr(&key, out);
                out.push_str(": ");
                python_repr(&value.get_item(&key).unwrap_or_default(), out);
            }
            out.push('}');
        }
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&python_float(f64::try_from(value.clone()).unwrap_or(f64::NAN)));
        }
        _ => _ = write!(out, "{value}"),
    }
}

/// What `{{ value }}` writes: str() of Python.
fn write_as_python(out: &mut Output, _: &State, value: &Value) -> Result<(), Error> {
    let text = match value.kind() {
        ValueKind::Undefined => return Ok(()),
        ValueKind::String => value.to_string(),
        _ => {
            let mut text = String::new();
            python_repr(value, &mut text);
            text
        }
    };
    out.write_str(&text).map_err(Error::from)
}

fn raise_exception(words: String) -> Result<Value, Error> {
    Err(wrong(words))
}

impl Template {
    fn open(source: &str) -> Result<Template, String> {
        let mut env = Environment::new();
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        env.set_formatter(write_as_python);
        env.add_filter("tojson", tojson);
        env.add_function("raise_exception", raise_exception);
        env.add_template_owned(NAME, without_generation_marks(source)).map_err(|e| e.to_string())?;
        Ok(Template { env })
    }

    fn render(&self, context: &str, local_seconds: i64) -> Result<String, String> {
        let context: Json = serde_json::from_str(context).map_err(|e| format!("context: {e}"))?;
        let mut env = self.env.clone();
        env.add_function("strftime_now", move |format: String| -> Result<String, Error> {
            let now = DateTime::from_timestamp(local_seconds, 0).ok_or_else(|| wrong("no such time"))?;
            let mut out = String::new();
            write!(out, "{}", now.format(&format)).map_err(|_| wrong("strftime_now: bad format"))?;
            Ok(out)
        });
        let template = env.get_template(NAME).map_err(|e| e.to_string())?;
        // A cause is told along: the template's own words are in it.
        template.render(Value::from_serialize(&context)).map_err(|e| e.to_string())
    }
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_template_open(
    source: *const u8,
    size: usize,
    error: *mut Bytes,
) -> *mut Template {
    opened(error, || Template::open(borrowed_text(source, size)?))
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_template_close(template: *mut Template) {
    closed(template);
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_template_render(
    template: *const Template,
    context: *const u8,
    size: usize,
    local_seconds: i64,
    text: *mut Bytes,
    error: *mut Bytes,
) -> bool {
    let rendered = guarded(error, || {
        let out = (*template).render(borrowed_text(context, size)?, local_seconds)?;
        *text = Bytes::own(out.into_bytes());
        Ok(())
    });
    rendered.is_some()
}
