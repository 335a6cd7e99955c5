//! Sums per group: a slab of keys, with a vector of 128-bit sums, some sums of doubles and some ordered bags of values each.

use crate::bag::Bag;
use crate::double_sum::DoubleSum;
use crate::rows::Rows;
use crate::trim::trim_buffer;

/// Sums per group.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) keys: Rows,
    width: usize,
    pub(crate) sums: Vec<i128>,
    doubles_per_group: usize,
    pub(crate) doubles: Vec<DoubleSum>,
    bags_per_group: usize,
    bags: Vec<Bag>,
    /// Bytes of the values in the bags.
    bag_bytes: usize,
}

impl Groups {
    pub(crate) fn new(key_width: usize, width: usize, doubles_per_group: usize, bags_per_group: usize) -> Self {
        Self {
            keys: Rows::new(key_width, 0, 0, true),
            width,
            sums: Vec::new(),
            doubles_per_group,
            doubles: Vec::new(),
            bags_per_group,
            bags: Vec::new(),
            bag_bytes: 0,
        }
    }

    pub(crate) fn find_or_insert(&mut self, key: &[u64]) -> usize {
        let (row, is_new) = self.keys.find_or_insert(key);
        let group = row as usize;
        if is_new {
            self.keys.set_weight(row, 1);
            self.sums.resize((group + 1).max(self.sums.len() / self.width) * self.width, 0);
            self.sums[group * self.width..(group + 1) * self.width].fill(0);
            self.doubles.resize(((group + 1) * self.doubles_per_group).max(self.doubles.len()), DoubleSum::default());
            self.doubles[group * self.doubles_per_group..(group + 1) * self.doubles_per_group]
                .fill(DoubleSum::default());
            self.bags.resize_with(((group + 1) * self.bags_per_group).max(self.bags.len()), Bag::default);
        }
        group
    }

    /// Drops all groups and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear_all();
        self.sums.clear();
        self.doubles.clear();
        self.bags.clear();
        self.bag_bytes = 0;
    }

    /// Drops a group, whose bags hold nothing any more.
    pub(crate) fn remove(&mut self, group: u32) {
        self.keys.remove(group);
        let first = group as usize * self.bags_per_group;
        self.bags[first..first + self.bags_per_group].fill_with(Bag::default);
    }

    pub(crate) fn sums(&self, group: usize) -> &[i128] {
        &self.sums[group * self.width..(group + 1) * self.width]
    }

    pub(crate) fn doubles(&self, group: usize) -> &[DoubleSum] {
        &self.doubles[group * self.doubles_per_group..(group + 1) * self.doubles_per_group]
    }

    pub(crate) fn doubles_mut(&mut self, group: usize) -> &mut [DoubleSum] {
        &mut self.doubles[group * self.doubles_per_group..(group + 1) * self.doubles_per_group]
    }

    pub(crate) fn sums_mut(&mut self, group: usize) -> &mut [i128] {
        &mut self.sums[group * self.width..(group + 1) * self.width]
    }

    pub(crate) fn bags(&self, group: usize) -> &[Bag] {
        &self.bags[group * self.bags_per_group..(group + 1) * self.bags_per_group]
    }

    pub(crate) fn bags_mut(&mut self, group: usize) -> &mut [Bag] {
        &mut self.bags[group * self.bags_per_group..(group + 1) * self.bags_per_group]
    }

    /// Adds to the bags of a group what others hold.
    pub(crate) fn merge_bags(&mut self, group: usize, changes: &mut [Bag]) {
        let first = group * self.bags_per_group;
        for (bag, change) in self.bags[first..].iter_mut().zip(changes) {
            self.bag_bytes = self.bag_bytes.saturating_add_signed(bag.merge(std::mem::take(change)));
        }
    }

    /// Gives memory back if there is much to give.
    pub(crate) fn give_back(&mut self) {
        if self.keys.give_back() {
            let places = self.keys.capacity() as usize;
            self.sums.truncate(places * self.width);
            self.doubles.truncate(places * self.doubles_per_group);
            self.bags.truncate(places * self.bags_per_group);
            trim_buffer(&mut self.sums);
            trim_buffer(&mut self.doubles);
            trim_buffer(&mut self.bags);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.sums.capacity() * 16
            + self.doubles.capacity() * std::mem::size_of::<DoubleSum>()
            + self.bags.capacity() * std::mem::size_of::<Bag>()
            + self.bag_bytes
    }
}
