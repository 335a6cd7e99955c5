//! Patterns of `like`: `%` stands for any text, `_` for one character.
//!
//! A pattern is cut at its `%` into segments of fixed length. The first is anchored at the start, the last at the end,
//! and those between are found from left to right, each as early as possible; no backtracking is needed.

use crate::error::{Fault, shown};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    segments: Vec<Segment>,
}

/// A part without `%`; `None` stands for any one character.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Segment {
    characters: Vec<Option<char>>,
    /// The characters as a text if none is a wildcard.
    text: Option<String>,
}

impl Segment {
    fn new(characters: Vec<Option<char>>) -> Self {
        let text = characters.iter().copied().collect();
        Self { characters, text }
    }

    /// Length in bytes of the match at the start of a text.
    fn match_start(&self, text: &str) -> Option<usize> {
        if let Some(literal) = &self.text {
            return text.starts_with(literal.as_str()).then_some(literal.len());
        }
        let mut rest = text.chars();
        for wanted in &self.characters {
            let found = rest.next()?;
            if wanted.is_some_and(|wanted| wanted != found) {
                return None;
            }
        }
        Some(text.len() - rest.as_str().len())
    }

    /// Start of the match at the end of a text.
    fn match_end(&self, text: &str) -> Option<usize> {
        if let Some(literal) = &self.text {
            return text.ends_with(literal.as_str()).then(|| text.len() - literal.len());
        }
        let mut rest = text.chars();
        for wanted in self.characters.iter().rev() {
            let found = rest.next_back()?;
            if wanted.is_some_and(|wanted| wanted != found) {
                return None;
            }
        }
        Some(rest.as_str().len())
    }

    /// End of the first match in a text.
    fn find(&self, text: &str) -> Option<usize> {
        if let Some(literal) = &self.text {
            return text.find(literal.as_str()).map(|start| start + literal.len());
        }
        let starts = text.char_indices().map(|(start, _)| start);
        starts.into_iter().find_map(|start| self.match_start(&text[start..]).map(|length| start + length))
    }
}

impl Pattern {
    /// Compiles a pattern. The escape character may only precede `%`, `_` and itself.
    pub fn parse(pattern: &str, escape: char) -> Result<Self, Fault> {
        let mut segments = Vec::new();
        let mut characters = Vec::new();
        let mut rest = pattern.chars();
        while let Some(character) = rest.next() {
            if character == escape {
                match rest.next() {
                    Some(next) if next == '%' || next == '_' || next == escape => {
                        characters.push(Some(next));
                    }
                    Some(next) => {
                        let message = format!(
                            "the escape character must not precede '{next}' in the pattern '{}'",
                            shown(pattern)
                        );
                        return Err(Fault::new("INVALID_FORMAT", message));
                    }
                    None => {
                        let message =
                            format!("the pattern '{}' must not end with the escape character", shown(pattern));
                        return Err(Fault::new("INVALID_FORMAT", message));
                    }
                }
            } else if character == '%' {
                segments.push(Segment::new(std::mem::take(&mut characters)));
            } else {
                characters.push(if character == '_' { None } else { Some(character) });
            }
        }
        segments.push(Segment::new(characters));
        Ok(Self { segments })
    }

    /// The text to search for if the pattern is `%text%`.
    pub fn as_infix(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [first, middle, last] if first.characters.is_empty() && last.characters.is_empty() => {
                middle.text.as_deref()
            }
            _ => None,
        }
    }

    /// The text to start with if the pattern is `text%`.
    pub fn as_prefix(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [first, last] if last.characters.is_empty() => first.text.as_deref(),
            _ => None,
        }
    }

    /// The text to end with if the pattern is `%text`.
    pub fn as_suffix(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [first, last] if first.characters.is_empty() => last.text.as_deref(),
            _ => None,
        }
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.try_match(text).unwrap_or(false)
    }

    fn try_match(&self, text: &str) -> Option<bool> {
        let (first, others) = self.segments.split_first()?;
        let start = first.match_start(text)?;
        let Some((last, middle)) = others.split_last() else {
            return Some(start == text.len());
        };
        let mut rest = &text[start..];
        rest = &rest[..last.match_end(rest)?];
        for segment in middle {
            rest = &rest[segment.find(rest).or_else(|| segment.characters.is_empty().then_some(0))?..];
        }
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    /// The obvious matcher to compare with.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|skip| naive(rest, &text[skip..])),
            Some(('_', rest)) => !text.is_empty() && naive(rest, &text[1..]),
            Some((wanted, rest)) => text.first() == Some(wanted) && naive(rest, &text[1..]),
        }
    }

    fn words(alphabet: &[char], length: usize) -> Vec<Vec<char>> {
        let mut all = vec![vec![]];
        let mut last = all.clone();
        for _ in 0..length {
            last =
                last.iter().flat_map(|word| alphabet.iter().map(move |&c| [word.as_slice(), &[c]].concat())).collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn all_short_patterns_match_as_the_naive_matcher_says() {
        let texts = words(&['a', 'é', '\n'], 4);
        for pattern in words(&['a', 'é', '_', '%'], 4) {
            let compiled = Pattern::parse(&pattern.iter().collect::<String>(), '\\').unwrap();
            for text in &texts {
                let joined: String = text.iter().collect();
                assert_eq!(compiled.matches(&joined), naive(&pattern, text), "{joined:?} like {pattern:?}");
            }
        }
    }

    #[test]
    fn escapes() {
        assert!(Pattern::parse(r"a\%c", '\\').unwrap().matches("a%c"));
        assert!(!Pattern::parse(r"a\%c", '\\').unwrap().matches("abc"));
        assert!(Pattern::parse("a__c", '_').unwrap().matches("a_c"));
        assert!(Pattern::parse("a/%c", '/').unwrap().matches("a%c"));
        assert_eq!(Pattern::parse(r"a\bc", '\\').unwrap_err().code, "INVALID_FORMAT");
        assert_eq!(Pattern::parse(r"abc\", '\\').unwrap_err().code, "INVALID_FORMAT");
        assert_eq!(Pattern::parse("%ab%", '\\').unwrap().as_infix(), Some("ab"));
        assert_eq!(Pattern::parse("%a_%", '\\').unwrap().as_infix(), None);
    }
}
