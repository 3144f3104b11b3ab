//! Canonical JSON (RFC 8785): one value, one byte string.
//!
//! Floats are refused, and so are integers beyond 2^53-1 in either direction: RFC 8785 writes every
//! number as a double, and two different integers would become one.

use super::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest integer that a double holds exactly together with all smaller ones.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// The value does not map to JSON.
    #[error("the value has no JSON form: {0}")]
    Json(#[from] serde_json::Error),
    /// A number that would not survive.
    #[error("the number {0} has no canonical form: only integers between -(2^53-1) and 2^53-1 have one")]
    Number(serde_json::Number),
}

/// Writes `value` in canonical form.
pub fn to_canonical<T: Serialize>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value = serde_json::to_value(value)?;
    check(&value)?;
    Ok(serde_json_canonicalizer::to_vec(&value)?)
}

fn check(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => {
            let safe = number.as_u64().is_some_and(|n| n <= MAX_SAFE_INTEGER)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() <= MAX_SAFE_INTEGER);
            if safe { Ok(()) } else { Err(CanonicalError::Number(number.clone())) }
        }
        Value::Array(items) => items.iter().try_for_each(check),
        Value::Object(fields) => fields.values().try_for_each(check),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// Bytes that are usually text: a JSON string where they are UTF-8, `{"hex": "…"}` where not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "BytesForm", into = "BytesForm")]
pub struct Bytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BytesForm {
    Text(String),
    Hex { hex: String },
}

impl TryFrom<BytesForm> for Bytes {
    type Error = &'static str;

    /// Bytes have one form: text where they are text, and pairs of lower-case digits where not.
    fn try_from(form: BytesForm) -> Result<Self, Self::Error> {
        let written = match form {
            BytesForm::Text(text) => return Ok(Self(text.into_bytes())),
            BytesForm::Hex { hex } => hex,
        };
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = written.as_bytes().chunks(2).map(byte).collect();
        let bytes = bytes.filter(|bytes| hex(bytes) == written && std::str::from_utf8(bytes).is_err());
        bytes.map(Self).ok_or("not the form of bytes that are no text")
    }
}

impl From<Bytes> for BytesForm {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex { hex: hex(error.as_bytes()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_value_has_one_form() {
        let bytes = to_canonical(&json!({"b": 1, "a": [true, null, "\u{e9}\n"], "A": -3})).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "{\"A\":-3,\"a\":[true,null,\"\u{e9}\\n\"],\"b\":1}");
    }

    #[test]
    fn numbers_that_would_collide_are_refused() {
        for bad in [json!(1.5), json!(9_007_199_254_740_992_u64), json!(u64::MAX), json!(i64::MIN)] {
            assert!(matches!(to_canonical(&json!([{"x": bad}])), Err(CanonicalError::Number(_))));
        }
        assert!(to_canonical(&json!([9_007_199_254_740_991_u64, -9_007_199_254_740_991_i64])).is_ok());
    }

    #[test]
    fn bytes_survive_whether_text_or_not() {
        for bytes in [&b"text\n"[..], b"", b"\xff\x00", "{\"hex\":\"00\"}".as_bytes()] {
            let form = serde_json::to_string(&Bytes(bytes.to_vec())).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&form).unwrap().0, bytes);
        }
    }

    #[test]
    fn bytes_have_one_form() {
        for bad in ["f", "fg", "FF", "+f", "61", "", "ff ", "ff0"] {
            assert!(serde_json::from_value::<Bytes>(json!({ "hex": bad })).is_err(), "{bad:?}");
        }
        assert_eq!(serde_json::from_value::<Bytes>(json!({ "hex": "ff00" })).unwrap().0, b"\xff\0");
    }
}
