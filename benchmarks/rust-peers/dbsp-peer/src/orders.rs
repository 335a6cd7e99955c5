//! The query over customers, orders and lineitems.

use dbsp::Runtime;
use dbsp::typed_batch::IndexedZSetReader;
use dbsp::utils::{Tup2, Tup3, Tup4};
use stream::{Arguments, OrderChange, Table, read_orders};

use crate::drive::{config, drive};

/// Q3: revenue per order of a segment's customers, ordered before and shipped after a day.
///
/// Plan: filters first; orders are joined with customers, the rest of them, stored by order key, with lineitems; the sum is linear, so it
/// is kept without the rows.
pub fn revenue(arguments: &Arguments) {
    let (circuit, (customers, orders, lineitems, output)) = Runtime::init_circuit(config(), |circuit| {
        let (customer, customers) = circuit.add_input_zset::<Tup2<i64, i64>>();
        let (order, orders) = circuit.add_input_zset::<Tup4<i64, i64, i64, i64>>();
        let (lineitem, lineitems) = circuit.add_input_zset::<Tup4<i64, i64, i64, i64>>();
        let customer = customer.filter(|Tup2(_, segment)| *segment == 0).map_index(|Tup2(key, _)| (*key, ()));
        let order = order
            .filter(|Tup4(_, _, date, _)| *date < 9204)
            .map_index(|Tup4(key, customer, date, priority)| (*customer, Tup3(*key, *date, *priority)));
        let lineitem = lineitem
            .filter(|Tup4(_, _, _, shipped)| *shipped > 9204)
            .map_index(|Tup4(order, _, revenue, _)| (*order, *revenue));
        let lines = order
            .join_index(&customer, |_, Tup3(key, date, priority), ()| Some((*key, Tup2(*date, *priority))))
            .join_index(&lineitem, |key, Tup2(date, priority), revenue| Some((Tup3(*key, *date, *priority), *revenue)));
        Ok((customers, orders, lineitems, lines.aggregate_linear(|revenue| *revenue).accumulate_output()))
    })
    .expect("a circuit");
    let feed = |batch: &[OrderChange]| {
        let (mut customer, mut order, mut lineitem) = (Vec::new(), Vec::new(), Vec::new());
        for &OrderChange { multiplicity, table, columns: [first, second, third, fourth] } in batch {
            match table {
                Table::Customer => customer.push(Tup2(Tup2(first, second), multiplicity)),
                Table::Orders => order.push(Tup2(Tup4(first, second, third, fourth), multiplicity)),
                Table::Lineitem => lineitem.push(Tup2(Tup4(first, second, third, fourth), multiplicity)),
            }
        }
        customers.append(&mut customer);
        orders.append(&mut order);
        lineitems.append(&mut lineitem);
    };
    drive(arguments, &read_orders(&arguments.file), circuit, feed, |deltas| {
        for (Tup3(key, date, priority), revenue, multiplicity) in output.concat().iter() {
            deltas.read([key, date, priority, revenue], multiplicity);
        }
    });
}
