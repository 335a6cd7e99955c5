//! The query over customers, orders and lineitems.

use differential_dataflow::input::Input;
use differential_dataflow::operators::CountTotal;
use stream::{Arguments, OrderChange, Table, read_orders};

use crate::drive::{Output, Rows, Time, drive};

/// (ck, seg).
type Customer = (i64, i64);
/// (ok, ck, od, sp).
type Order = (i64, i64, i64, i64);
/// (ok, ln, rv, sd).
type Lineitem = (i64, i64, i64, i64);
/// (ok, od, sp) and the sum of rv.
type Revenue = ((i64, i64, i64), isize);

/// Q3: revenue per order of a segment's customers, ordered before and shipped after a day.
pub fn revenue(arguments: Arguments) {
    timely::execute(timely::Config::thread(), move |worker| {
        let output = Output::default();
        let (mut customers, mut orders, mut lineitems) = worker.dataflow::<Time, _, _>(|scope| {
            let (customers, customer) = scope.new_collection::<Customer, isize>();
            let (orders, order) = scope.new_collection::<Order, isize>();
            let (lineitems, lineitem) = scope.new_collection::<Lineitem, isize>();
            let sums = plan(customer, order, lineitem);
            output.read(sums, |&((key, date, priority), sum)| [key, date, priority, sum as i64]);
            (customers, orders, lineitems)
        });
        let feed = |batch: &[OrderChange], next| {
            for &OrderChange { multiplicity, table, columns: [first, second, third, fourth] } in batch {
                let multiplicity = multiplicity as isize;
                match table {
                    Table::Customer => customers.update((first, second), multiplicity),
                    Table::Orders => orders.update((first, second, third, fourth), multiplicity),
                    Table::Lineitem => lineitems.update((first, second, third, fourth), multiplicity),
                }
            }
            customers.advance_to(next);
            customers.flush();
            orders.advance_to(next);
            orders.flush();
            lineitems.advance_to(next);
            lineitems.flush();
        };
        drive(worker, &arguments, &read_orders(&arguments.file), &output, feed);
    })
    .expect("a worker");
}

/// Plan: filters first; orders are joined with customers, the rest of them, stored by order key, with lineitems; revenue and the number of
/// lines move into the multiplicity, so that the sum is kept without the rows.
fn plan<'scope>(
    customer: Rows<'scope, Customer>,
    order: Rows<'scope, Order>,
    lineitem: Rows<'scope, Lineitem>,
) -> Rows<'scope, Revenue> {
    let customer = customer.filter(|&(_, segment)| segment == 0).map(|(key, _)| key).arrange_by_self();
    let order = order
        .filter(|&(_, _, date, _)| date < 9204)
        .map(|(key, customer, date, priority)| (customer, (key, date, priority)))
        .arrange_by_key();
    let lineitem = lineitem
        .filter(|&(_, _, _, shipped)| shipped > 9204)
        .map(|(order, _, revenue, _)| (order, revenue))
        .arrange_by_key();
    order
        .join_core(customer, |_, &(key, date, priority), ()| Some((key, (date, priority))))
        .arrange_by_key()
        .join_core(lineitem, |&key, &(date, priority), &revenue| Some(((key, date, priority), revenue)))
        .explode(|(group, revenue)| Some((group, (revenue as isize, 1_isize))))
        .count_total()
        .map(|(group, (sum, _))| (group, sum))
        .consolidate()
}
