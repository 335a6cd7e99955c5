//! DISTINCT above a core: a count per row, needed where the tree's own support counting does not apply (computed rows, heads that had to be
//! extended). Emits a row when its count leaves or reaches zero.

use crate::codec;
use crate::consolidate::RowCodec;
use crate::error::KernelError;
use crate::flow::{Chunk, Flow, decode_head};
use crate::interner::Interner;
use crate::operator::{Context, Held, Operator, Position};
use crate::rows::Rows;
use everview_expr::DataType;

/// The rows seen so far, each with the number of times it is there.
#[derive(Debug)]
pub struct Distinct {
    codec: RowCodec,
    rows: Rows,
    texts: Vec<usize>,
    /// The rows of the batch in progress, one after another, with their counts after it.
    prepared: (Vec<u64>, Vec<i64>),
}

impl Distinct {
    /// An empty set of rows with columns of these types.
    pub fn new(types: &[DataType]) -> Self {
        let codec = RowCodec::new(types);
        let texts = (0..types.len()).filter(|&c| codec::is_text(types[c])).map(|c| codec.place(c).offset).collect();
        Self { rows: Rows::new(codec.width(), 0, 0, true), codec, texts, prepared: Default::default() }
    }
}

impl Operator for Distinct {
    fn kind(&self) -> &'static str {
        "distinct"
    }

    fn prepare(&mut self, input: Flow, context: &mut Context) -> Result<Flow, KernelError> {
        let net = self.codec.net(&input, context.interner)?;
        let width = self.codec.width();
        self.prepared = (net.words, net.weights);
        let (words, counts) = &mut self.prepared;
        let mut picked = vec![(Vec::new(), Vec::new()); input.chunks.len()];
        for (i, (count, (chunk, position))) in counts.iter_mut().zip(net.firsts).enumerate() {
            let before = self.rows.find(&words[i * width..(i + 1) * width]).map_or(0, |row| self.rows.weight(row));
            let after = before.checked_add(*count).ok_or_else(too_many)?;
            debug_assert!(after >= 0, "the input's deltas are exact");
            *count = after;
            if (before == 0) != (after == 0) {
                picked[chunk].0.push(position);
                picked[chunk].1.push(if after > 0 { 1 } else { -1 });
            }
        }
        let chunks = input.chunks.iter().zip(picked).map(|(chunk, (rows, weights))| chunk.take(rows, weights));
        Ok(Flow::of(chunks.collect::<Result<_, _>>()?))
    }

    fn commit(&mut self, interner: &mut Interner) {
        let (words, counts) = std::mem::take(&mut self.prepared);
        let width = self.codec.width();
        for (i, after) in counts.into_iter().enumerate() {
            let words = &words[i * width..(i + 1) * width];
            let (row, is_new) = self.rows.find_or_insert(words);
            self.rows.set_weight(row, after);
            let references = i64::from(is_new) - i64::from(after == 0);
            if references != 0 {
                self.texts.iter().for_each(|&text| interner.refer(words[text] as u32, references));
            }
            if after == 0 {
                self.rows.remove(row);
            }
        }
    }

    fn abort(&mut self) {
        self.prepared = Default::default();
    }

    fn give_back(&mut self) {
        self.rows.give_back();
    }

    fn held(&mut self) -> Option<&mut dyn Held> {
        Some(self)
    }

    fn is_stateful(&self) -> bool {
        true
    }

    fn size(&self) -> (usize, usize) {
        (self.rows.len(), self.rows.bytes())
    }

    fn can_refuse(&self) -> bool {
        false
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn count(&self, _: Option<Option<i128>>) -> Option<Option<i128>> {
        Some(Some(self.rows.len() as i128))
    }

    fn release_texts(&self, interner: &mut Interner) {
        for row in self.rows.ids() {
            self.texts.iter().for_each(|&text| interner.refer(self.rows.value(row, text) as u32, -1));
        }
    }
}

impl Held for Distinct {
    fn read(&self, from: &Position, limit: usize, context: &Context) -> Result<(Flow, Option<Position>), KernelError> {
        let mut ids = self.rows.ids_from(from.row());
        let rows: Vec<u32> = ids.by_ref().take(limit).collect();
        let word = |at: usize| rows.iter().map(|&row| self.rows.value(row, at)).collect::<Vec<u64>>();
        let mut words: Vec<Vec<u64>> = (0..self.codec.width()).map(word).collect();
        let text = (&*context.interner, context.pool);
        let chunks = decode_head(&self.codec.head(), self.codec.types(), &mut words, rows.len(), None, text);
        let chunks = chunks.into_iter().map(|(range, columns)| Chunk { columns, weights: vec![1; range.len()] });
        Ok((Flow::of(chunks.collect()), ids.next().map(Position::Row)))
    }

    fn absorb(&mut self, input: Flow, context: &mut Context) -> Result<(), KernelError> {
        self.prepare(input, context)?;
        self.commit(context.interner);
        Ok(())
    }
}

fn too_many() -> KernelError {
    KernelError::new("ARITHMETIC_OVERFLOW", "a row of a DISTINCT is there more than 2^63 times")
}
