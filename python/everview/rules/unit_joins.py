"""A join with one row without columns, which is what is left of a SELECT without FROM, is no join.

inner join[p](R, values[()])  =  filter[p](R)
inner join[p](values[()], R)  =  filter[p](R)
"""

from __future__ import annotations

from everview.relational.plan import Filter, Join, JoinKind, Node, Values, inputs_of, with_inputs


def unit_joins(node: Node) -> Node:
    """The plan without joins with such a row."""
    node = with_inputs(node, tuple(unit_joins(below) for below in inputs_of(node)))
    if not isinstance(node, Join) or node.kind is not JoinKind.INNER:
        return node
    for unit, other in ((node.right, node.left), (node.left, node.right)):
        if isinstance(unit, Values) and unit.rows == ((),):
            return Filter(other, node.conditions) if node.conditions else other
    return node
