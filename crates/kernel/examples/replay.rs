//! Replays a stream of edge changes against a plan, for profiling the kernel without Python:
//! `cargo run --release -p everview-kernel --example replay -- plan.json edges.csv [repetitions]`
//! where the plan reads one table `g(src BIGINT NOT NULL, dst BIGINT NOT NULL)` and the CSV has the columns op,src,dst.

use arrow_array::{ArrayRef, Int64Array};
use everview_expr::DataType;
use everview_kernel::database::Database;
use everview_kernel::plan::Plan;
use everview_kernel::table::Change;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let plan = std::fs::read_to_string(&arguments[1])?;
    let text = std::fs::read_to_string(&arguments[2])?;
    let repetitions: usize = arguments.get(3).map_or(Ok(5), |n| n.parse())?;
    let parse = |line: &str| line.split(',').map(|n| n.parse::<i64>().expect("integers")).collect::<Vec<_>>();
    let events: Vec<Vec<i64>> = text.lines().skip(1).map(parse).collect();
    let column =
        |batch: &[Vec<i64>], c: usize| -> ArrayRef { Arc::new(batch.iter().map(|e| e[c]).collect::<Int64Array>()) };
    let batches: Vec<(Vec<ArrayRef>, Vec<i64>)> = events
        .chunks(events.len() / 100)
        .map(|b| (vec![column(b, 1), column(b, 2)], b.iter().map(|e| e[0]).collect()))
        .collect();
    for _ in 0..repetitions {
        let mut database = Database::default();
        let columns = ["src", "dst"].map(|name| (name.to_owned(), DataType::BigInt, false));
        let table = database.create_table("g", &columns, &[], None)?;
        let plan: Plan = serde_json::from_str(&plan)?;
        let view = database.create_view(plan)?;
        let start = Instant::now();
        let mut rows = 0;
        for (columns, weights) in &batches {
            let changes = [(table, Change::Rows(columns.clone(), weights.clone()))];
            rows += database.commit(&changes, true, false, None)?[0].1.len();
        }
        println!(
            "{:?} for {} events, {rows} delta rows, {:?}",
            start.elapsed(),
            events.len(),
            database.view(view).counters()
        );
    }
    Ok(())
}
