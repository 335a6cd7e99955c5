//! Numbers as texts: doubles as Java prints them, and the texts that Spark reads as numbers and truth values.

use std::fmt::Write as _;

use crate::calendar::trim;

/// Writes a double as `Double.toString` does: shortest digits, `E` notation outside of 10^-3 to 10^7.
pub(crate) fn write_double(value: f64, out: &mut String) {
    write_floating(value, &format!("{:e}", value.abs()), &format!("{:.1e}", value.abs()), out);
}

/// Writes a float as `Float.toString` does.
pub(crate) fn write_float(value: f32, out: &mut String) {
    write_floating(f64::from(value), &format!("{:e}", value.abs()), &format!("{:.1e}", value.abs()), out);
}

/// `shortest` has the fewest digits that identify the value, `two` has two; Java prints two where one would do, and
/// takes the closest.
fn write_floating(value: f64, shortest: &str, two: &str, out: &mut String) {
    if value.is_nan() {
        out.push_str("NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push('-');
    }
    if value.is_infinite() {
        out.push_str("Infinity");
        return;
    }
    if value == 0.0 {
        out.push_str("0.0");
        return;
    }
    let text = if shortest.find('e') == Some(1) { two } else { shortest };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-3..7).contains(&exponent) {
        let point = if mantissa.contains('.') { "" } else { ".0" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{mantissa}{point}E{exponent}");
        return;
    }
    let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.push_str(trim_zeros(&digits));
        return;
    }
    let whole = exponent as usize + 1;
    while digits.len() <= whole {
        digits.push('0');
    }
    let (whole, fraction) = digits.split_at(whole);
    let _ = write!(out, "{whole}.{}", trim_zeros(fraction));
}

/// Cuts trailing zeros but leaves one digit.
fn trim_zeros(digits: &str) -> &str {
    let trimmed = digits.trim_end_matches('0');
    if trimmed.is_empty() { "0" } else { trimmed }
}

/// Reads an integer: blanks around, a sign, digits.
pub(crate) fn parse_integer(text: &str) -> Option<i64> {
    trim(text).parse().ok()
}

/// Reads a double or float as Spark does (hexadecimal texts apart).
pub(crate) fn parse_floating<T: std::str::FromStr + From<f32>>(text: &str) -> Option<T> {
    let text = text.trim_matches(|c: char| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        let number = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
        return number.parse().ok();
    }
    match text.to_ascii_lowercase().as_str() {
        "inf" | "+inf" | "infinity" | "+infinity" => Some(T::from(f32::INFINITY)),
        "-inf" | "-infinity" => Some(T::from(f32::NEG_INFINITY)),
        "nan" => Some(T::from(f32::NAN)),
        _ if unsigned == "NaN" => Some(T::from(f32::NAN)),
        _ => None,
    }
}

/// Reads a truth value.
pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    match trim(text).to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_in_java() {
        let cases = [
            (1.0, "1.0"),
            (100.0, "100.0"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (1e-3, "0.001"),
            (0.00099, "9.9E-4"),
            (1.0e10, "1.0E10"),
            (1.234_567_89e-5, "1.23456789E-5"),
            (5e-324, "4.9E-324"),
            (2e-323, "2.0E-323"),
            (f64::MAX, "1.7976931348623157E308"),
            (-0.0, "-0.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (123_456.789, "123456.789"),
            (-1.5, "-1.5"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (1_234_567.0, "1234567.0"),
            (2e5, "200000.0"),
            (0.02, "0.02"),
        ];
        for (value, expected) in cases {
            let mut out = String::new();
            write_double(value, &mut out);
            assert_eq!(out, expected);
        }
        for (value, expected) in
            [(0.1_f32, "0.1"), (1.677_721_6e7, "1.6777216E7"), (1.4e-45, "1.4E-45"), (f32::MAX, "3.4028235E38")]
        {
            let mut out = String::new();
            write_float(value, &mut out);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn texts_read_as_doubles() {
        let read = |text: &str| parse_floating::<f64>(text);
        assert_eq!(read(" 1.5d "), Some(1.5));
        assert_eq!(read("5."), Some(5.0));
        assert_eq!(read("-.5e1"), Some(-5.0));
        assert_eq!(read("1e400"), Some(f64::INFINITY));
        assert_eq!(read("-Infinity"), Some(f64::NEG_INFINITY));
        assert!(read("NaN").unwrap().is_nan() && read("-NaN").unwrap().is_nan());
        for text in ["", "+nan", ".", "1x", "e5", "d", "1dd", "infx", "0x1p3"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
