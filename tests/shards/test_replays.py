"""The same input again: rows and blobs in another order, over other partitions and shards, on engines rebuilt from their logs, in other batches.

What leaves in each batch, what is set aside and what is held must be the same: a sink may have what the first attempt gave.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import given
from hypothesis import strategies as st
from local_pipeline import LocalPipeline, add_up, batch_for
from watching import MODES, ORDER, keyed_as

from everview.schema.datatype import BIGINT, STRING
from everview.schema.table import Column, Table
from everview.shards import durable

T = Table("t", (Column("g", BIGINT), Column("x", BIGINT), Column("note", STRING)))
K = Table("k", (Column("id", BIGINT, False), Column("g", BIGINT), Column("name", STRING)), ("id",))
VIEWS = [
    "SELECT t.x, k.g, k.name FROM t JOIN k ON t.g = k.id",
    "SELECT k.g, COUNT(*) AS n, SUM(t.x) AS x FROM t JOIN k ON t.g = k.id GROUP BY k.g",
    "SELECT DISTINCT k.name FROM t JOIN k ON t.x = k.g WHERE t.note IS NOT NULL",
    "SELECT a.x, b.x AS y, k.name FROM t a JOIN t b ON a.g = b.x JOIN k ON b.g = k.id",
]

numbers = st.sampled_from([None, 1, 2, 3])
texts = st.sampled_from([None, "", "a", "b", "\u00e9"])
rows_of_t = st.tuples(numbers, numbers, texts, st.sampled_from([1, 1, 1, -1, 2]))
rows_of_k = st.tuples(st.sampled_from([1, 1, 2, 3, None]), numbers, texts, st.integers(0, 3), st.booleans())
batches = st.lists(st.tuples(st.lists(rows_of_t, max_size=6), st.lists(rows_of_k, max_size=9)), min_size=1, max_size=4)


def inputs_of(mode, batch):
    """A batch as the table's input has it: (id, g, name, sequence, live) per row of k."""
    bare, keyed = batch
    if mode.startswith("images"):
        rest = (7,) if mode == "images with rest" else ()
        table = keyed_as(mode, K).table
        return {"t": batch_for(T, bare), "k": batch_for(table, [(*r[:3], *rest, 1 if r[4] else -1) for r in keyed])}
    place = {0: lambda s: (), 1: lambda s: (s,), 2: lambda s: divmod(s, 2)}[len(ORDER[mode])]
    rows = [(*r[:3], *place(r[3]), r[4]) for r in keyed]
    return {"t": batch_for(T, bare), "k": batch_for(K, rows, (*ORDER[mode], "_live"))}


class Attempt:
    """A run over batches: what left in each, as net changes, and what was set aside."""

    def __init__(self, sql, mode, shards, given, *, random=None, losses=0.0):
        self.deltas, self.letters = [], []
        with tempfile.TemporaryDirectory() as letters:
            run = LocalPipeline(
                sql,
                [T, K],
                shards,
                {"k": keyed_as(mode, K)},
                dead_letters=letters,
                seed=0 if random is None else random.randrange(1 << 30),
                shuffled=random is not None,
                workers=2,
            )
            for number, (bare, keyed) in enumerate(given):
                batch = (list(bare), list(keyed))
                parts = 1
                if random is not None:
                    parts = random.randint(1, 4)
                    for rows in batch:
                        random.shuffle(rows)
                    if random.random() < losses:
                        run.lose_workers()
                self.deltas.append(add_up(Counter(), run.step(inputs_of(mode, batch), parts=parts)))
                self.letters.append(set_aside(letters, number))
            self.total = Counter()
            for delta in self.deltas:
                self.total.update(delta)
            self.total = Counter({row: n for row, n in self.total.items() if n})


def set_aside(directory, number):
    """The rows in the dead letters of a batch, whatever place found them."""
    found = Counter()
    for path in Path(directory).glob(f"batch={number:010d}/*.jsonl"):
        for line in path.read_text().splitlines():
            letter = json.loads(line)
            found[letter["table"], letter["code"], json.dumps(letter["row"], sort_keys=True)] += 1
    return found


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=25)
@given(batches, st.sampled_from(VIEWS), st.integers(0, 1 << 30), st.sampled_from([0, 4 << 20]))
def test_a_replay_gives_the_same(mode, given_batches, sql, seed, threshold):
    random = Random(seed)
    with patch.object(durable, "_SMALLEST_SNAPSHOT", threshold):
        first = Attempt(sql, mode, 2, given_batches)
        for shards in (2, 3):
            again = Attempt(sql, mode, shards, given_batches, random=random, losses=0.5)
            assert again.deltas == first.deltas
            assert again.letters == first.letters


@pytest.mark.parametrize("mode", [mode for mode in MODES if ORDER.get(mode)])
@settings(max_examples=40)
@given(
    st.lists(rows_of_k, max_size=20), st.lists(rows_of_t, max_size=6), st.sampled_from(VIEWS), st.integers(0, 1 << 30)
)
def test_other_batches_give_the_same_view(mode, keyed, bare, sql, seed):
    """Of tables with a sequence, however ties are spread over batches; what can never be used is set aside in any of them."""
    random = Random(seed)
    bare = [(*row[:3], abs(row[3])) for row in bare]
    first = Attempt(sql, mode, 2, [(bare, keyed)])
    rows = list(keyed)
    random.shuffle(rows)
    cuts = sorted(random.randint(0, len(rows)) for _ in range(4))
    parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    again = Attempt(
        sql, mode, 2, [(bare if n == 2 else [], part) for n, part in enumerate(parts)], random=random, losses=0.3
    )
    assert again.total == first.total
    assert sum(again.letters, Counter()) == sum(first.letters, Counter())
