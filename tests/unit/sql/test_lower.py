"""Queries to logical views."""

import pytest

from everview.query.logical_view import Core, GroupAggregate
from everview.schema.datatype import parse_type
from everview.lower import lower_query

W1 = """SELECT g1.src a, g1.dst b, g2.dst c, g3.dst d FROM g g1, g g2, g g3
        WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst % 10 = 0"""
Q3 = """SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority"""
Q5 = """SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
          AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
          AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01'
          AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR
        GROUP BY n_name"""
Q10 = """SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address,
                c_phone, c_comment
         FROM customer, orders, lineitem, nation
         WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
           AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH AND l_returnflag = 'R'
           AND c_nationkey = n_nationkey
         GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment"""


def core(view):
    assert isinstance(view.stages[0], Core)
    return view.stages[0].query


def test_w1_is_a_core_alone(tables, show) -> None:
    view = lower_query("w1", W1, tables)
    (stage,) = view.stages
    assert str(stage.query) == "w1(a, b, c, d) :- g1(a, b), g2(b, c), g3(c, d)"
    assert [show(a.filter) for a in stage.query.atoms] == ["-", "-", "eq(modulo(dst, 10), 0)"]
    assert [c.nullable for c in view.columns] == [True, False, False, True]  # join variables are never NULL


def test_w2a_distinct(stages) -> None:
    assert stages(W1.replace("g1.src a, g1.dst b, g2.dst c, g3.dst d", "DISTINCT g1.dst b, g2.dst c")) == [
        "distinct v(b, c) :- g1(b), g2(b, c), g3(c)"
    ]


def test_w2b_star(stages) -> None:
    sql = "SELECT a.src, COUNT(*) AS n FROM g a, g b, g c, g d WHERE a.src = b.src AND b.src = c.src AND c.src = d.src GROUP BY a.src"
    assert stages(sql) == ["v(src) :- a(src), b(src), c(src), d(src)", "group [src] n=count(1/1)"]


def test_tpch_q3(lower, stages, filters, show) -> None:
    assert stages(Q3) == [
        "v(l_orderkey, o_orderdate, o_shippriority) :- customer(c_custkey), "
        "orders(l_orderkey, c_custkey, o_orderdate, o_shippriority), lineitem(l_orderkey)",
        "group [l_orderkey, o_orderdate, o_shippriority] agg_0=sum(sum_0/1)",
        "map l_orderkey=l_orderkey, revenue=agg_0, o_orderdate=o_orderdate, o_shippriority=o_shippriority",
    ]
    assert filters(Q3) == {
        "customer": "eq(c_mktsegment, 'BUILDING  ')",
        "orders": "lt(o_orderdate, 9204)",
        "lineitem": "gt(l_shipdate, 9204)",
    }
    query = core(lower(Q3))
    assert [show(f) for a in query.atoms for f in a.factors] == [
        "-",
        "-",
        "multiply(l_extendedprice, subtract(1, l_discount))",
    ]
    assert query.atoms[0].keys == (frozenset({"c_custkey"}),)
    assert query.atoms[1].keys == (frozenset({"l_orderkey"}),)  # o_orderkey, under the name of its class
    assert query.atoms[2].keys == ()  # l_linenumber is not bound
    assert [(c.name, str(c.type), c.nullable) for c in lower(Q3).columns] == [
        ("l_orderkey", "bigint", False),
        ("revenue", "decimal(36,4)", False),
        ("o_orderdate", "date", True),
        ("o_shippriority", "int", True),
    ]


def test_tpch_q5_is_cyclic_through_the_nation(lower, stages) -> None:
    core, condition, *_ = stages(Q5)
    assert core == (
        "v(n_name, l_extendedprice, l_discount, c_nationkey, s_nationkey) :- customer(c_custkey, c_nationkey), "
        "orders(l_orderkey, c_custkey), lineitem(l_orderkey, l_suppkey, l_extendedprice, l_discount), "
        "supplier(l_suppkey, s_nationkey), nation(s_nationkey, n_name, n_regionkey), region(n_regionkey)"
    )
    assert condition == "filter eq(c_nationkey, s_nationkey)"
    (warning,) = lower(Q5).warnings
    assert warning.startswith("`c_nationkey = s_nationkey` over `customer` and `supplier` is no edge of a join tree")


def test_tpch_q10(stages) -> None:
    assert stages(Q10)[0] == (
        "v(c_custkey, c_name, c_acctbal, n_name, c_address, c_phone, c_comment) :- "
        "customer(c_custkey, c_name, c_address, c_nationkey, c_phone, c_acctbal, c_comment), "
        "orders(l_orderkey, c_custkey), lineitem(l_orderkey), nation(c_nationkey, n_name)"
    )


class TestPlainSelect:
    def test_expressions_need_a_map(self, stages) -> None:
        assert stages("SELECT t.x + u.x AS z, t.x FROM t, u WHERE t.id = u.id") == [
            "v(t_x, u_x) :- t(id, t_x), u(id, u_x)",
            "map z=add(cast(t_x):bigint, u_x), x=t_x",
        ]

    def test_one_variable_selected_twice_needs_a_map(self, stages) -> None:
        assert stages("SELECT t.id, u.id AS again FROM t JOIN u ON t.id = u.id") == [
            "v(id) :- t(id), u(id)",
            "map id=id, again=id",
        ]

    def test_constants_alone(self, stages) -> None:
        assert stages("SELECT 1 AS one FROM t") == ["v() :- t()", "map one=1"]

    def test_later_items_may_use_earlier_aliases(self, stages) -> None:
        assert stages("SELECT x + 1 AS a, a * 2 AS b FROM t") == [
            "v(x) :- t(x)",
            "map a=add(x, 1), b=multiply(add(x, 1), 2)",
        ]

    def test_columns_go_before_aliases(self, stages) -> None:
        assert stages("SELECT x + 1 AS y, y AS z FROM t")[-1] == "map y=add(x, 1), z=y"

    def test_names_without_alias_are_the_text(self, lower) -> None:
        assert [c.name for c in lower("SELECT X,  x  +  1, `y` FROM t").columns] == ["X", "x + 1", "y"]

    def test_identifiers_are_case_insensitive(self, stages) -> None:
        assert stages("SELECT A.X FROM T a WHERE a.Y = 1") == ["v(X) :- a(X)"]

    def test_star(self, stages) -> None:
        assert stages("SELECT * FROM g a") == ["v(src, dst) :- a(src, dst)"]
        assert stages("SELECT a.*, b.dst AS d2 FROM g a JOIN g b ON a.dst = b.src") == [
            "v(src, dst, d2) :- a(src, dst), b(dst, d2)"
        ]
        assert stages("SELECT * EXCEPT (dst) FROM g") == ["v(src) :- g(src)"]


class TestJoins:
    def test_using_shows_the_column_once(self, lower, stages) -> None:
        sql = "SELECT * FROM (SELECT id, x FROM t) a JOIN (SELECT id, n FROM u) b USING (id)"
        assert [c.name for c in lower(sql).columns] == ["id", "x", "n"]
        assert stages(sql) == ["v(id, x, n) :- t(id, x), u(id, n)"]

    def test_using_makes_bare_names_unambiguous(self, stages) -> None:
        assert stages("SELECT id FROM t JOIN u USING (id)") == ["v(id) :- t(id), u(id)"]

    def test_natural_join(self, stages) -> None:
        sql = "SELECT a.x FROM (SELECT id, x FROM t) a NATURAL JOIN (SELECT id, n FROM u) b"
        assert stages(sql) == ["v(x) :- t(id, x), u(id)"]

    def test_cross_join_binds_nothing(self, stages) -> None:
        assert stages("SELECT t.x FROM t CROSS JOIN u") == ["v(x) :- t(x), u()"]

    def test_parenthesised_join(self, stages) -> None:
        sql = "SELECT t.x FROM (t JOIN u ON t.id = u.id) JOIN g ON g.src = u.x"
        assert stages(sql) == ["v(x) :- t(id, x), u(id, src), g(src)"]

    def test_computed_keys(self, stages) -> None:
        sql = "SELECT a.src, b.dst FROM g a, g b WHERE a.dst + 1 = b.src * 2"
        assert stages(sql) == ["v(src, dst) :- a(src, add_dst_1), b(add_dst_1, dst)"]

    def test_integer_types_meet_in_one_variable(self, lower, show) -> None:
        view = lower("SELECT u.x, t.x AS tx FROM t, u, g WHERE t.x = u.x AND t.x = u.tid AND g.src = t.x")
        query = core(view)
        assert str(query) == "v(x) :- t(x), u(x), g(x)"
        assert str(query.variables["x"].type) == "bigint"
        assert [show(e) for a in query.atoms for _, e in a.bindings] == ["cast(x):bigint", "x", "src"]
        assert show(query.atoms[1].filter) == "eq(x, cast(tid):bigint)"  # u binds the class twice
        assert [(n, show(e)) for n, e in view.stages[1].expressions] == [("x", "x"), ("tx", "cast(x):int")]

    def test_decimals_join_integers_exactly(self, lower) -> None:
        query = core(lower("SELECT t.id FROM t, u WHERE t.q = u.n"))
        assert query.variables["q"].type == parse_type("decimal(12,2)")

    def test_chars_of_different_length_are_padded(self, lower, show) -> None:
        query = core(lower("SELECT u.id FROM t, u WHERE t.c = u.c5"))
        assert [show(e) for a in query.atoms for _, e in a.bindings] == ["concat(c, '  ')", "id", "c5"]

    def test_transitive_equality_inside_one_atom(self, stages, filters) -> None:
        sql = "SELECT t.id FROM t, u WHERE t.x = u.n AND t.y = u.n"
        assert stages(sql) == ["v(id) :- t(id, x), u(x)"]
        assert filters(sql) == {"t": "eq(x, y)"}

    def test_equality_with_a_constant_stays_a_filter(self, stages, filters) -> None:
        sql = "SELECT a.src FROM g a, g b WHERE a.dst = b.src AND b.src = 5"
        assert stages(sql) == ["v(src) :- a(src, dst), b(dst)"]
        assert filters(sql) == {"b": "eq(src, 5)"}

    def test_conditions_without_a_table(self, filters) -> None:
        assert filters("SELECT a.src FROM g a, g b WHERE a.dst = b.src AND 1 = 1") == {}
        assert filters("SELECT a.src FROM g a, g b WHERE a.dst = b.src AND 1 = 2") == {"a": "False"}

    def test_filters_of_where_and_on_are_joined_by_and(self, filters) -> None:
        sql = (
            "SELECT t.id FROM t JOIN u ON t.id = u.id AND (u.n > 3 AND t.x = 1) WHERE t.y BETWEEN 1 AND 2 OR t.s = 'a'"
        )
        assert filters(sql) == {"t": "and(eq(x, 1), or(and(ge(y, 1), le(y, 2)), eq(s, 'a')))", "u": "gt(n, 3)"}

    def test_keys_need_all_columns(self, lower) -> None:
        query = core(lower("SELECT l_orderkey, l_linenumber FROM lineitem"))
        assert query.atoms[0].keys == (frozenset({"l_orderkey", "l_linenumber"}),)


class TestDerivedTables:
    def test_derived_tables_are_merged(self, stages, filters) -> None:
        sql = """SELECT d.z, e.w FROM (SELECT x + 1 AS z, id FROM t WHERE y > 1) d
                 JOIN (SELECT id, s AS w FROM t WHERE s LIKE 'a%') e ON d.id = e.id"""
        assert stages(sql) == ["v(x, s) :- t(id, x), e_t(id, s)", "map z=add(x, 1), w=s"]
        assert filters(sql) == {"t": "gt(y, 1)", "e_t": "like(s, 'a%')"}

    def test_outer_aliases_keep_their_names(self, lower) -> None:
        sql = "SELECT a.src FROM (SELECT a.src FROM g a JOIN g b ON a.dst = b.src) d JOIN g a ON a.src = d.src"
        assert [a.name for a in core(lower(sql)).atoms] == ["d_a", "b", "a"]

    def test_ctes_are_merged_at_each_reference(self, stages) -> None:
        sql = "WITH h(p, q) AS (SELECT src, dst FROM g WHERE src > 0) SELECT a.p, b.q FROM h a JOIN h b ON a.q = b.p"
        assert stages(sql) == ["v(p, q) :- g(p, dst), b_g(dst, q)"]

    def test_ctes_see_earlier_ctes(self, stages) -> None:
        sql = "WITH a AS (SELECT id, x FROM t), b AS (SELECT id FROM a WHERE x > 0) SELECT id FROM b"
        assert stages(sql) == ["v(id) :- t(id)"]

    def test_column_aliases(self, stages) -> None:
        assert stages("SELECT k FROM (SELECT id, x FROM t) AS d(k, l) WHERE l = 1") == ["v(k) :- t(k)"]
        assert stages("SELECT k FROM g AS h(k, l)") == ["v(k) :- h(k)"]

    def test_parentheses_around_a_query(self, stages) -> None:
        assert stages("(SELECT src FROM g)") == ["v(src) :- g(src)"]


class TestDistinct:
    def test_computed_items_are_bound_in_the_core(self, stages) -> None:
        assert stages("SELECT DISTINCT t.x + 1 AS z, u.s FROM t, u WHERE t.id = u.id") == [
            "distinct v(z, s) :- t(id, z), u(id, s)"
        ]

    def test_constants_and_repetitions_need_a_map(self, stages) -> None:
        assert stages("SELECT DISTINCT x AS a, 5 AS five, x AS b FROM t") == [
            "distinct v(a) :- t(a)",
            "map a=a, five=5, b=a",
        ]

    def test_items_over_several_atoms(self, stages) -> None:
        assert stages("SELECT DISTINCT t.x + u.x AS z FROM t, u WHERE t.id = u.id") == [
            "distinct v(t_x, u_x) :- t(id, t_x), u(id, u_x)",
            "map z=add(cast(t_x):bigint, u_x)",
            "distinct",
        ]

    def test_group_by_without_aggregates_is_distinct(self, stages) -> None:
        assert stages("SELECT x FROM t GROUP BY x") == ["distinct v(x) :- t(x)"]
        assert stages("SELECT x FROM t GROUP BY x, y") == ["distinct v(x, y) :- t(x, y)", "map x=x"]
        assert stages("SELECT t.x + u.n AS z FROM t, u GROUP BY t.x + u.n") == [
            "distinct v(x, n) :- t(x), u(n)",
            "map z=add(x, n)",
            "distinct",
            "map z=z",
        ]


class TestGrouping:
    @pytest.mark.parametrize("key", ["year(d)", "1", "yr"])
    def test_expressions_ordinals_and_aliases(self, stages, key: str) -> None:
        assert stages(f"SELECT year(d) AS yr, COUNT(*) AS n FROM t GROUP BY {key}") == [
            "v(yr) :- t(yr)",
            "group [yr] n=count(1/1)",
        ]

    def test_expressions_over_keys_and_aggregates(self, stages) -> None:
        assert stages("SELECT x + 1 AS z, SUM(y) * 2 AS w, COUNT(*) + x AS v FROM t GROUP BY x") == [
            "v(x) :- t(x)",
            "group [x] agg_0=sum(sum_0/count_1), agg_1=count(1/1)",
            "map z=add(x, 1), w=multiply(agg_0, 2), v=add(agg_1, cast(x):bigint)",
        ]

    def test_equal_aggregates_are_computed_once(self, lower) -> None:
        (_, group, _) = lower("SELECT SUM(x) AS a, SUM(X) + COUNT(*) AS b, COUNT(1) AS c FROM t").stages
        assert isinstance(group, GroupAggregate)
        assert len(group.aggregates) == 2

    def test_sum_avg_and_count_share_components(self, lower, show) -> None:
        view = lower("SELECT SUM(x) AS a, AVG(x) AS b, COUNT(x) AS c FROM t")
        query = core(view)
        assert query.components == ("sum_0", "count_1")
        assert [show(f) for f in query.atoms[0].factors] == ["cast(x):bigint", "case(is_null(x), 0, 1)"]
        group = view.stages[1]
        assert [(a.sum, a.count) for a in group.aggregates] == [
            ("sum_0", "count_1"),
            ("sum_0", "count_1"),
            (None, "count_1"),
        ]
        assert [str(a.argument_type) for a in group.aggregates] == ["bigint", "bigint", "int"]
        assert [(str(a.type), a.nullable) for a in group.aggregates] == [
            ("bigint", True),
            ("double", True),
            ("bigint", False),
        ]

    def test_what_is_never_null_needs_no_count(self, stages) -> None:
        assert (
            stages("SELECT tid, SUM(n) AS a, COUNT(n) AS b FROM u GROUP BY tid")[1]
            == "group [tid] a=sum(sum_0/1), b=count(1/1)"
        )

    def test_products_over_atoms_are_one_component(self, lower, show) -> None:
        view = lower("SELECT SUM(t.p * u.p) AS z FROM t, u WHERE t.id = u.id")
        query = core(view)
        assert query.components == ("sum_0", "count_1")
        assert [[show(f) for f in a.factors] for a in query.atoms] == [["p", "case(is_null(p), 0, 1)"]] * 2
        assert str(view.stages[1].aggregates[0].argument_type) == "decimal(25,4)"
        assert query.head == ()

    def test_factors_are_grouped_by_atom(self, lower, show) -> None:
        query = core(lower("SELECT SUM(t.p * u.n * t.q * 2) AS z FROM t, u WHERE t.id = u.id"))
        assert [show(a.factors[0]) for a in query.atoms] == ["multiply(multiply(p, q), 2)", "cast(n):decimal(10,0)"]

    def test_integer_products_only_where_they_cannot_overflow(self, stages) -> None:
        assert stages("SELECT SUM(CAST(t.x AS BIGINT) * u.n) AS z FROM t, u")[1] == "group [] z=sum(sum_0/count_1)"
        assert stages("SELECT SUM(t.x * u.n) AS z FROM t, u") == [
            "v(x, n) :- t(x), u(n)",
            "group [] z=sum(cast(multiply(x, n)):bigint)",
        ]

    def test_floating_point_extends_the_head(self, stages) -> None:
        assert stages("SELECT t.y, SUM(t.f) AS z FROM t GROUP BY t.y") == ["v(y, f) :- t(y, f)", "group [y] z=sum(f)"]

    def test_sums_over_atoms_extend_the_head(self, stages) -> None:
        assert stages("SELECT SUM(t.x + u.n) AS z FROM t, u WHERE t.id = u.id") == [
            "v(x, n) :- t(id, x), u(id, n)",
            "group [] z=sum(cast(add(x, n)):bigint)",
        ]

    def test_keys_over_atoms_are_computed_before_grouping(self, stages) -> None:
        sql = """SELECT t.x + u.x AS k, SUM(t.p) AS sp, t.y, COUNT(*) AS n FROM t JOIN u ON t.id = u.id
                 GROUP BY t.x + u.x, t.y"""
        assert stages(sql) == [
            "v(y, t_x, u_x, p) :- t(id, t_x, y, p), u(id, u_x)",
            "map y=y, t_x=t_x, u_x=u_x, p=p, k=add(cast(t_x):bigint, u_x)",
            "group [y, k] agg_0=sum(p), agg_1=count(1/1)",
            "map k=k, sp=agg_0, y=y, n=agg_1",
        ]

    def test_having_is_a_filter(self, stages) -> None:
        assert stages("SELECT x, COUNT(*) AS n FROM t GROUP BY x HAVING n > 1 AND SUM(y) > x") == [
            "v(x) :- t(x)",
            "group [x] agg_0=count(1/1), agg_1=sum(sum_0/count_1)",
            "filter and(gt(agg_0, 1), gt(agg_1, cast(x):bigint))",
            "map x=x, n=agg_0",
        ]

    def test_constant_keys_are_dropped(self, stages) -> None:
        assert stages("SELECT 'k' AS k, x, COUNT(*) AS n FROM t GROUP BY 'k', x") == [
            "v(x) :- t(x)",
            "group [x] agg_0=count(1/1)",
            "map k='k', x=x, n=agg_0",
        ]

    def test_one_constant_key_is_kept_if_there_is_no_other(self, stages) -> None:
        # GROUP BY 'k' over no rows has no rows, unlike a global aggregate.
        assert stages("SELECT 'k' AS k, COUNT(*) AS n FROM t GROUP BY 'k'") == [
            "v(k) :- t(k)",
            "group [k] n=count(1/1)",
        ]

    def test_global_aggregate(self, stages) -> None:
        assert stages("SELECT COUNT(*) FROM t") == ["v() :- t()", "group [] COUNT(*)=count(1/1)"]

    def test_distinct_above_aggregates(self, stages) -> None:
        assert stages("SELECT DISTINCT COUNT(*) AS n FROM t GROUP BY x") == [
            "v(x) :- t(x)",
            "group [x] agg_0=count(1/1)",
            "map n=agg_0",
            "distinct",
        ]

    def test_keys_of_one_class_are_one_key(self, stages) -> None:
        sql = "SELECT a.dst, b.src, COUNT(*) AS n FROM g a, g b WHERE a.dst = b.src GROUP BY a.dst, b.src"
        assert stages(sql) == [
            "v(dst) :- a(dst), b(dst)",
            "group [dst] agg_0=count(1/1)",
            "map dst=dst, src=dst, n=agg_0",
        ]

    def test_constant_arguments_count_to_the_first_atom(self, lower, show) -> None:
        query = core(lower("SELECT SUM(2) AS z FROM t, u"))
        assert [show(a.factors[0]) for a in query.atoms] == ["2", "-"]


def test_every_stage_has_unique_names(lower) -> None:
    for sql in (W1, Q3, Q5, Q10, "SELECT x AS agg_0, COUNT(*) + 1 AS x FROM t GROUP BY x"):
        for stage in lower(sql).stages:
            names = [c.name.lower() for c in stage.columns]
            assert len(set(names)) == len(names)


def test_lowering_is_deterministic(lower) -> None:
    assert [lower(q) for q in (W1, Q3, Q5, Q10)] == [lower(q) for q in (W1, Q3, Q5, Q10)]
