//! The length of a text once it is encoded as JSON.

/// Counts the quotes.
pub fn size(text: &str) -> usize {
    2 + text.chars().map(escaped_size).sum::<usize>()
}

/// The longest prefix of `text` that takes at most `most` bytes in JSON, quotes included.
pub fn fitting(text: &str, most: usize) -> &str {
    let mut size = 2;
    let end = text.char_indices().find_map(|(at, character)| {
        size += escaped_size(character);
        (size > most).then_some(at)
    });
    &text[..end.unwrap_or(text.len())]
}

fn escaped_size(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\x08' | '\x0c' => 2,
        '\0'..='\x1f' => 6,
        _ => character.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_size_that_serde_writes() {
        let everything: String = ('\0'..='\u{2ff}').chain(['€', '😀', '\u{2028}']).collect();
        assert_eq!(size(&everything), serde_json::to_string(&everything).unwrap().len());
        for most in 2..size(&everything) {
            let written = serde_json::to_string(fitting(&everything, most)).unwrap().len();
            assert!(written <= most && written + 6 > most, "{written} of {most}");
        }
        assert_eq!(fitting("abc", 5), "abc");
    }
}
