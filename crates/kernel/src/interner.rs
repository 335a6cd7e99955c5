//! Interned texts and byte strings, reference-counted: equal ones have equal ids, so rows of words compare and hash them by id.
//!
//! Both are held as bytes and share their ids: a text and a byte string are never compared, and where one has the bytes of the other it costs
//! nothing. Below, a *text* is either. A text lives as long as something refers to it. Texts met while encoding a batch have no reference yet; `sweep`, at the end of a
//! commit, frees those that nothing came to refer to. Id 0 is no text: it stands where a NULL is. Space is linear in the texts of the current data, not of its history.

use crate::hash::text_seed;
use crate::trim::{Trim, trim_buffer};
use foldhash::quality::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Bytes of text in one column of a chunk (512 MiB): expressions that put texts together then have room within 32-bit offsets.
const CHUNK_BYTES: u64 = 1 << 29;

/// A set of texts with ids.
#[derive(Debug)]
pub struct Interner {
    texts: Vec<Box<[u8]>>,
    references: Vec<u64>,
    index: HashTable<u32>,
    free: Vec<u32>,
    /// Ids whose references were zero at some time since the last sweep.
    unreferenced: Vec<u32>,
    state: FixedState,
    bytes: usize,
    /// The length of the longest text there ever was.
    longest: usize,
    trim: Trim,
    chunk_bytes: u64,
}

impl Default for Interner {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            references: Vec::new(),
            index: HashTable::new(),
            free: Vec::new(),
            unreferenced: Vec::new(),
            state: FixedState::with_seed(text_seed()),
            bytes: 0,
            longest: 0,
            trim: Trim::default(),
            chunk_bytes: CHUNK_BYTES,
        }
    }
}

impl Interner {
    /// The id of a text.
    pub fn intern(&mut self, text: &[u8]) -> u32 {
        let hash = self.state.hash_one(text);
        if let Some(&id) = self.index.find(hash, |&id| &*self.texts[id as usize] == text) {
            return id;
        }
        self.bytes += text.len();
        self.longest = self.longest.max(text.len());
        if self.texts.is_empty() {
            self.texts.push(Box::default());
            self.references.push(0);
        }
        let id = if let Some(id) = self.free.pop() {
            self.texts[id as usize] = text.into();
            id
        } else {
            self.texts.push(text.into());
            self.references.push(0);
            self.texts.len() as u32 - 1
        };
        self.unreferenced.push(id);
        let (texts, state) = (&self.texts, &self.state);
        self.index.insert_unique(hash, id, |&other| state.hash_one(&*texts[other as usize]));
        id
    }

    /// The id of a text that is already known.
    pub fn find(&self, text: &[u8]) -> Option<u32> {
        self.index.find(self.state.hash_one(text), |&id| &*self.texts[id as usize] == text).copied()
    }

    /// The bytes of an id.
    #[inline]
    pub fn text(&self, id: u32) -> &[u8] {
        &self.texts[id as usize]
    }

    /// Bytes of text in one column of a chunk of rows.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Makes chunks smaller or larger.
    pub fn set_chunk_bytes(&mut self, bytes: u64) {
        self.chunk_bytes = bytes;
    }

    /// No text is longer than this.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// `count` more references to the text (fewer, if negative).
    #[inline]
    pub fn refer(&mut self, id: u32, count: i64) {
        if id == 0 {
            return;
        }
        let references = &mut self.references[id as usize];
        *references = references.checked_add_signed(count).expect("references are balanced");
        if *references == 0 {
            self.unreferenced.push(id);
        }
    }

    /// Frees the texts that nothing refers to.
    pub fn sweep(&mut self) {
        let mut candidates = std::mem::take(&mut self.unreferenced);
        for id in candidates.drain(..) {
            if self.references[id as usize] > 0 {
                continue;
            }
            let hash = self.state.hash_one(&*self.texts[id as usize]);
            if let Ok(found) = self.index.find_entry(hash, |&other| other == id) {
                found.remove();
                self.bytes -= self.texts[id as usize].len();
                self.texts[id as usize] = Box::default();
                self.free.push(id);
            }
        }
        self.unreferenced = candidates;
        if self.trim.is_due(self.index.len(), self.texts.len()) {
            self.give_back();
        }
    }

    /// Gives the memory of freed texts at the end back.
    fn give_back(&mut self) {
        while self.references.last() == Some(&0) && self.texts.len() > 1 {
            self.references.pop();
            self.texts.pop();
        }
        let held = self.texts.len() as u32;
        self.free.retain(|&id| id < held);
        let (texts, state) = (&self.texts, &self.state);
        self.index.shrink_to(0, |&id| state.hash_one(&*texts[id as usize]));
        trim_buffer(&mut self.texts);
        trim_buffer(&mut self.references);
        trim_buffer(&mut self.free);
        trim_buffer(&mut self.unreferenced);
    }

    /// Number of texts held.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no text is held.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes + self.texts.capacity() * 16 + self.references.capacity() * 8 + self.index.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_live_as_long_as_they_are_referred_to() {
        let mut interner = Interner::default();
        let a = interner.intern(b"a");
        assert_eq!(interner.intern(b"a"), a);
        interner.refer(a, 1);
        interner.intern(b"b");
        interner.sweep();
        assert_eq!((interner.len(), interner.text(a)), (1, &b"a"[..]));
        interner.refer(a, -1);
        let again = interner.intern(b"a");
        assert_eq!(again, a);
        interner.refer(again, 1);
        interner.sweep();
        assert_eq!(interner.find(b"a"), Some(a));
        interner.refer(a, -1);
        interner.sweep();
        assert!(interner.is_empty());
    }
}
