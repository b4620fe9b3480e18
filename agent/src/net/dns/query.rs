//! Reads a DNS query. Nothing in it is trusted.

use super::record_type::RecordType;

const HEADER_BYTES: usize = 12;
/// With the length bytes and the root (RFC 1035).
const MAX_NAME_BYTES: usize = 255;
const MAX_LABEL_BYTES: usize = 63;
const CLASS_IN: u16 = 1;

const IS_RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const RECURSION_DESIRED: u16 = 0x0100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseCode {
    NoError = 0,
    FormatError = 1,
    ServerFailure = 2,
    NameError = 3,
    NotImplemented = 4,
    Refused = 5,
}

/// What an answer repeats of its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Echo {
    pub id: u16,
    pub opcode: u16,
    pub recursion_desired: bool,
    /// The question as it came, in the case it was written in; empty if it could not be read.
    pub question: Vec<u8>,
    pub has_edns: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub echo: Echo,
    /// Lower case, without the last dot; empty for the root.
    pub name: String,
    pub record_type: RecordType,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Query(Query),
    /// A message that has an id to answer to.
    Faulty(Echo, ResponseCode),
    /// Too short for an answer, or an answer itself.
    Ignored,
}

pub fn parse(message: &[u8]) -> Parsed {
    let Some(header) = message.get(..HEADER_BYTES) else { return Parsed::Ignored };
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let flags = field(2);
    if flags & IS_RESPONSE != 0 {
        return Parsed::Ignored;
    }
    let mut echo = Echo {
        id: field(0),
        opcode: flags & OPCODE,
        recursion_desired: flags & RECURSION_DESIRED != 0,
        question: Vec::new(),
        has_edns: false,
    };
    if echo.opcode != 0 {
        return Parsed::Faulty(echo, ResponseCode::NotImplemented);
    }
    let [questions, answers, authorities, additions] = [4, 6, 8, 10].map(field);
    let body = &message[HEADER_BYTES..];
    if questions != 1 || answers != 0 || authorities != 0 {
        return Parsed::Faulty(echo, ResponseCode::FormatError);
    }
    let Some((question, rest)) = parse_question(body) else {
        return Parsed::Faulty(echo, ResponseCode::FormatError);
    };
    echo.question = body[..body.len() - rest.len()].to_vec();
    echo.has_edns = additions > 0 && starts_with_edns(rest);
    if question.class != CLASS_IN {
        return Parsed::Faulty(echo, ResponseCode::Refused);
    }
    Parsed::Query(Query { echo, name: question.name, record_type: question.record_type })
}

struct Question {
    name: String,
    record_type: RecordType,
    class: u16,
}

/// Returns the bytes after the question, too.
fn parse_question(body: &[u8]) -> Option<(Question, &[u8])> {
    let (name, rest) = parse_name(body)?;
    let [type_high, type_low, class_high, class_low, rest @ ..] = rest else { return None };
    let record_type = RecordType(u16::from_be_bytes([*type_high, *type_low]));
    let class = u16::from_be_bytes([*class_high, *class_low]);
    Some((Question { name, record_type, class }, rest))
}

/// Refuses pointers, which have no place in the first name of a message, and bytes that no host name has.
fn parse_name(body: &[u8]) -> Option<(String, &[u8])> {
    let mut name = String::new();
    let mut rest = body;
    loop {
        let (length, after) = rest.split_first()?;
        let length = usize::from(*length);
        if length == 0 {
            return Some((name, after));
        }
        // Two bytes remain for the length of this label and the root.
        if length > MAX_LABEL_BYTES || name.len() + length + 2 >= MAX_NAME_BYTES {
            return None;
        }
        let label = after.get(..length)?;
        if !name.is_empty() {
            name.push('.');
        }
        for byte in label {
            if !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'_') {
                return None;
            }
            name.push(char::from(byte.to_ascii_lowercase()));
        }
        rest = &after[length..];
    }
}

fn starts_with_edns(additional: &[u8]) -> bool {
    matches!(additional, [0, high, low, ..] if RecordType(u16::from_be_bytes([*high, *low])) == RecordType::OPT)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn encode_name(name: &str) -> Vec<u8> {
        let labels = name.split('.').filter(|label| !label.is_empty());
        let mut bytes: Vec<u8> = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
        bytes.push(0);
        bytes
    }

    pub fn query(name: &str, record_type: u16) -> Vec<u8> {
        let header = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        [&header[..], &encode_name(name), &record_type.to_be_bytes(), &[0, 1]].concat()
    }

    fn fault(message: &[u8]) -> Option<ResponseCode> {
        match parse(message) {
            Parsed::Faulty(_, code) => Some(code),
            _ => None,
        }
    }

    #[test]
    fn reads_the_name_in_lower_case_and_keeps_the_question_as_it_came() {
        let Parsed::Query(query) = parse(&query("PyPI.org", 1)) else { panic!("not a query") };
        assert_eq!((query.name.as_str(), query.record_type), ("pypi.org", RecordType::A));
        assert_eq!(query.echo.question, [&encode_name("PyPI.org")[..], &[0, 1, 0, 1]].concat());
        assert!(query.echo.recursion_desired && !query.echo.has_edns);
    }

    #[test]
    fn notices_edns() {
        let mut message = query("pypi.org", 28);
        message[11] = 1;
        message.extend([0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
        let Parsed::Query(query) = parse(&message) else { panic!("not a query") };
        assert!(query.echo.has_edns);
    }

    #[test]
    fn refuses_what_is_no_plain_query() {
        let good = query("pypi.org", 1);
        let with = |at: usize, byte: u8| {
            let mut message = good.clone();
            message[at] = byte;
            message
        };
        assert_eq!(fault(&with(2, 0x28)), Some(ResponseCode::NotImplemented), "another operation");
        assert_eq!(fault(&with(5, 2)), Some(ResponseCode::FormatError), "two questions");
        assert_eq!(fault(&with(7, 1)), Some(ResponseCode::FormatError), "a query with an answer");
        assert_eq!(fault(&with(12, 0xc0)), Some(ResponseCode::FormatError), "a pointer");
        assert_eq!(fault(&with(13, b' ')), Some(ResponseCode::FormatError), "a space");
        assert_eq!(fault(&with(13, 0xff)), Some(ResponseCode::FormatError), "a byte outside ASCII");
        assert_eq!(fault(&with(good.len() - 1, 3)), Some(ResponseCode::Refused), "another class");
        assert_eq!(parse(&with(2, 0x81)), Parsed::Ignored, "an answer");
        for length in 12..good.len() {
            assert_eq!(fault(&good[..length]), Some(ResponseCode::FormatError), "{length} bytes");
        }
        assert_eq!(parse(&good[..11]), Parsed::Ignored);
    }

    #[test]
    fn accepts_the_longest_name_and_label_and_none_longer() {
        let label = "a".repeat(63);
        let name = |last: usize| format!("{label}.{label}.{label}.{}", "b".repeat(last));
        assert!(matches!(parse(&query(&name(61), 1)), Parsed::Query(query) if query.name.len() == 253));
        assert_eq!(fault(&query(&name(62), 1)), Some(ResponseCode::FormatError));
        assert_eq!(fault(&query(&"c".repeat(64), 1)), Some(ResponseCode::FormatError));
    }
}
