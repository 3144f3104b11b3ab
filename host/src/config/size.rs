//! Sizes of memory: `64MiB`.

/// Why a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SizeError {
    /// It is not a whole number and a unit.
    #[error("a size is a whole number with a unit, as in `64MiB`")]
    Shape,
    /// A number without a unit.
    #[error("`{0}` has no unit")]
    NoUnit(String),
    /// A unit that does not exist, and one that was perhaps meant.
    #[error("`{0}` is not a unit of size")]
    Unit(String, Option<&'static str>),
    /// More than fits.
    #[error("the size is too large")]
    Overflow,
}

impl SizeError {
    /// What to write instead.
    pub(super) fn help(&self) -> String {
        match self {
            Self::NoUnit(number) => format!("write the unit, for example `\"{number}MiB\"`"),
            Self::Unit(unit, Some(meant)) => {
                format!("`{unit}` is read as thousands by some and as powers of two by others; write `{meant}`")
            }
            Self::Shape | Self::Unit(_, None) | Self::Overflow => {
                "the units are `B`, `KiB`, `MiB` and `GiB`".to_owned()
            }
        }
    }
}

/// The bytes of a size.
pub(super) fn parse_size(text: &str) -> Result<u64, SizeError> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if number.is_empty() {
        return Err(SizeError::Shape);
    }
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let shift = match unit {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "" => return Err(SizeError::NoUnit(number.to_owned())),
        _ if unit.starts_with('.') => return Err(SizeError::Shape),
        other => {
            let meant = match other.to_ascii_lowercase().as_str() {
                "k" | "kb" | "kib" => Some("KiB"),
                "m" | "mb" | "mib" => Some("MiB"),
                "g" | "gb" | "gib" => Some("GiB"),
                _ => None,
            };
            return Err(SizeError::Unit(other.to_owned(), meant));
        }
    };
    let number: u64 = number.parse().map_err(|_| SizeError::Overflow)?;
    number.checked_mul(1 << shift).ok_or(SizeError::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        let unit = |text: &str, meant| Err(SizeError::Unit(text.to_owned(), meant));
        let cases: &[(&str, Result<u64, SizeError>)] = &[
            ("1B", Ok(1)),
            ("64KiB", Ok(65536)),
            ("64MiB", Ok(64 << 20)),
            ("2 GiB", Ok(2 << 30)),
            ("0B", Ok(0)),
            ("64", Err(SizeError::NoUnit("64".to_owned()))),
            ("64MB", unit("MB", Some("MiB"))),
            ("64mib", unit("mib", Some("MiB"))),
            ("64X", unit("X", None)),
            ("1.5GiB", Err(SizeError::Shape)),
            ("-1B", Err(SizeError::Shape)),
            ("", Err(SizeError::Shape)),
            ("MiB", Err(SizeError::Shape)),
            ("17179869183GiB", Ok(17_179_869_183 << 30)),
            ("17179869184GiB", Err(SizeError::Overflow)),
            ("99999999999999999999B", Err(SizeError::Overflow)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text), *expected, "{text}");
        }
    }
}
