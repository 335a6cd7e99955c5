//! Whether a core is a tree as the engine relies on: see the rules in `docs/reference/maintenance-plan.md`.

use crate::plan::{Core, Hub, Node};
use crate::shape::EdgeKind;

/// What is wrong, or nothing.
type Checked = Result<(), String>;

fn require(holds: bool, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(message()) }
}

fn are_all_in(part: &[usize], whole: &[usize]) -> bool {
    part.iter().all(|v| whole.contains(v))
}

fn has_repetition(values: &[usize]) -> bool {
    values.iter().enumerate().any(|(i, v)| values[..i].contains(v))
}

impl Core {
    /// Checks the rules; says what is wrong.
    pub(crate) fn check(&self) -> Checked {
        self.check_numbers()?;
        self.check_links()?;
        self.check_atoms()?;
        for (h, hub) in self.hubs.iter().enumerate() {
            self.check_kind(h, hub)?;
        }
        self.check_connex()
    }

    /// Everything that is numbered exists, and no list of columns names one twice.
    fn check_numbers(&self) -> Checked {
        let is_list = |columns: &[usize]| columns.iter().all(|&v| v < self.variables.len()) && !has_repetition(columns);
        let unknown = |what: String| format!("{what} names a variable that does not exist, or one twice");
        require(self.head.iter().all(|&v| v < self.variables.len()), || unknown("the head".to_owned()))?;
        for (n, node) in self.nodes.iter().enumerate() {
            require(is_list(node.columns()), || unknown(format!("node {n}")))?;
            let hubs = node.down().iter().chain([&node.up()]).all(|&h| h < self.hubs.len());
            require(hubs && !has_repetition(node.down()), || format!("node {n} refers to hubs that do not exist"))?;
        }
        for (h, hub) in self.hubs.iter().enumerate() {
            require(is_list(&hub.key), || unknown(format!("hub {h}")))?;
            let nodes = hub.children.iter().chain(&hub.parent).all(|&n| n < self.nodes.len());
            require(nodes && !hub.children.is_empty() && !has_repetition(&hub.children), || {
                format!("hub {h} refers to nodes that do not exist, or has none below")
            })?;
        }
        for atom in &self.atoms {
            let columns: Vec<usize> = atom.columns.iter().map(|c| c.variable).collect();
            require(is_list(&columns), || unknown(format!("atom {}", atom.name)))?;
        }
        Ok(())
    }

    /// Nodes and hubs refer to each other, and all hang below hub 0.
    fn check_links(&self) -> Checked {
        require(!self.hubs.is_empty() && self.hubs[0].parent.is_none() && self.hubs[0].key.is_empty(), || {
            "hub 0 has no node above and no key".to_owned()
        })?;
        let (mut waiting, mut hubs, mut nodes) = (vec![0], 0, 0);
        while let Some(h) = waiting.pop() {
            hubs += 1;
            for &child in &self.hubs[h].children {
                let node = &self.nodes[child];
                nodes += 1;
                require(node.up() == h, || format!("hub {h} and node {child} below it do not agree"))?;
                require(are_all_in(&self.hubs[h].key, node.columns()), || {
                    format!("node {child} lacks a variable of the key of hub {h} above it")
                })?;
                for &down in node.down() {
                    require(self.hubs[down].parent == Some(child), || {
                        format!("node {child} and hub {down} below it do not agree")
                    })?;
                    require(are_all_in(&self.hubs[down].key, node.columns()), || {
                        format!("node {child} lacks a variable of the key of hub {down} below it")
                    })?;
                }
                waiting.extend(node.down());
            }
        }
        // every node has one hub above and every hub one node, so what hangs below hub 0 is met once
        require(hubs == self.hubs.len() && nodes == self.nodes.len(), || {
            "the nodes and hubs are not one tree below hub 0".to_owned()
        })
    }

    /// Atoms have a node each, of the same columns; projections are what their guard's key says.
    fn check_atoms(&self) -> Checked {
        let mut seen = vec![false; self.atoms.len()];
        for (n, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Relation { atom, columns, .. } => {
                    let known = self.atoms.get(*atom).filter(|_| !seen[*atom]);
                    let Some(known) = known else {
                        return Err(format!("node {n} is of no atom, or of one that has a node"));
                    };
                    seen[*atom] = true;
                    require(known.columns.iter().map(|c| c.variable).eq(columns.iter().copied()), || {
                        format!("node {n} has other columns than its atom")
                    })?;
                    require(known.factors.len() == self.components && known.power > 0, || {
                        format!("atom {} does not have a factor for every component, or a power of 0", known.name)
                    })?;
                }
                Node::Projection { columns, down, .. } => {
                    let guard = down.first().map(|&h| &self.hubs[h]);
                    require(guard.is_some_and(|guard| guard.key == *columns), || {
                        format!("projection {n} does not have the columns of its guard's key")
                    })?;
                }
            }
        }
        require(seen.iter().all(|&seen| seen), || "an atom has no node".to_owned())
    }

    fn check_kind(&self, h: usize, hub: &Hub) -> Checked {
        if hub.kind != EdgeKind::Optional {
            require(hub.phantom.is_empty(), || format!("hub {h} is not optional and has a phantom"))?;
        }
        require(hub.phantom.is_empty() || hub.phantom.len() == self.components, || {
            format!("the phantom of hub {h} does not have a value for every component")
        })?;
        if hub.kind == EdgeKind::Required {
            return Ok(());
        }
        require(hub.children.len() == 1, || format!("hub {h} has several nodes below, and is not required"))?;
        let is_guard =
            |parent: usize| matches!(&self.nodes[parent], Node::Projection { down, .. } if down.first() == Some(&h));
        let fits = match hub.parent {
            None => false,
            Some(parent) => hub.kind == EdgeKind::Exists || !is_guard(parent),
        };
        require(fits, || format!("hub {h} is the root or a guard, which cannot be of this kind"))?;
        let connex = self.nodes[hub.children[0]].is_connex();
        require(!connex || hub.kind == EdgeKind::Optional, || {
            format!("results cannot bind the node below hub {h}, which asks for existence only")
        })
    }

    /// Connex nodes stand below connex nodes and have columns of the head only; the head is made of them.
    fn check_connex(&self) -> Checked {
        for (n, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_connex()) {
            let above = self.hubs[node.up()].parent;
            require(above.is_none_or(|above| self.nodes[above].is_connex()), || {
                format!("node {n} is connex and the one above it is not")
            })?;
            require(are_all_in(node.columns(), &self.head), || format!("node {n} is connex and not all in the head"))?;
        }
        let shown = |v: &usize| self.nodes.iter().any(|node| node.is_connex() && node.columns().contains(v));
        require(self.head.iter().all(shown), || "a column of the head is in no connex node".to_owned())
    }
}
