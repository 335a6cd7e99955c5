//! A change of the kernel together with what the session notes of it.
//!
//! The interpreter raises interrupts (Ctrl-C, any signal handler that raises, exceptions that another thread sends) between instructions of
//! Python code: also between the return of the kernel and the line that notes it. Here both happen within one native call. That holds as
//! long as what is called is native as well; the functions given from Python are methods of the kernel with their arguments bound.
//! Callbacks of users are Python code: an interrupt ends at most the one that it comes in, and is raised when the others have been called.

use crate::errors::is_refusal;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An object, one of its attributes, and the value that this gets.
type Note<'py> = (Bound<'py, PyAny>, String, Bound<'py, PyAny>);

/// How many pending interrupts are taken up before callbacks run all the same.
const PENDING: usize = 100;

/// Calls `change` and, unless it refuses, puts its result into the attribute `keep`, makes the notes, and calls `then`.
#[pyfunction]
#[pyo3(signature = (change, notes, keep = None, then = None))]
pub fn change_and_note<'py>(
    change: Bound<'py, PyAny>,
    notes: Vec<Note<'py>>,
    keep: Option<(Bound<'py, PyAny>, String)>,
    then: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let result = change.call0()?;
    if let Some((object, attribute)) = keep {
        object.setattr(attribute, &result)?;
    }
    write(notes)?;
    if let Some(then) = then {
        then.call0()?;
    }
    Ok(result)
}

/// Calls `commit`, which gives the changes of views as (view, record batches), and, unless it refuses, makes the notes and calls the callbacks.
///
/// `audience` has the listeners of each view. A callback gets `table(record batches)` if that has rows. `rest` gets all tables, unless an
/// interrupt came before. `breathe` is a Python function that does nothing: pending interrupts are raised in it, so that none of them ends
/// a callback. `state` gets `failed` if the batch may be half applied. Its `notifying` is active while code of the user runs in this
/// thread, and applying while that is called from within `commit`.
///
/// Returns the tables by view, what the callbacks raised as (view, exception), and the first interrupt.
#[pyfunction]
#[allow(clippy::type_complexity, clippy::too_many_arguments)]
#[pyo3(signature = (commit, notes, audience, state, table, breathe, rest = None))]
pub fn commit_and_notify<'py>(
    py: Python<'py>,
    commit: Bound<'py, PyAny>,
    notes: Vec<Note<'py>>,
    audience: Vec<(usize, Vec<Bound<'py, PyAny>>)>,
    state: Bound<'py, PyAny>,
    table: Bound<'py, PyAny>,
    breathe: Bound<'py, PyAny>,
    rest: Option<Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Vec<(usize, PyErr)>, Option<PyErr>)> {
    let notifying = state.getattr("notifying")?;
    during(&notifying, "active", || {
        let changed = during(&notifying, "applying", || commit.call0()).inspect_err(|error| {
            if !is_refusal(py, error) {
                let _ = state.setattr("failed", true);
            }
        })?;
        write(notes)?;
        let tables = PyDict::new(py);
        for item in changed.try_iter()? {
            let (view, batches): (usize, Bound<'py, PyAny>) = item?.extract()?;
            tables.set_item(view, table.call1((batches,))?)?;
        }
        let (failures, mut interrupt) = notify(py, &audience, &tables, &breathe)?;
        if let (Some(rest), None) = (rest, &interrupt) {
            interrupt = rest.call1((&tables,)).err();
        }
        Ok((tables, failures, interrupt))
    })
}

/// Does some work while an attribute of the object is true.
fn during<T>(object: &Bound<'_, PyAny>, attribute: &str, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    object.setattr(attribute, true)?;
    let outcome = work();
    object.setattr(attribute, false)?;
    outcome
}

type Raised = (Vec<(usize, PyErr)>, Option<PyErr>);

fn notify<'py>(
    py: Python<'py>,
    audience: &[(usize, Vec<Bound<'py, PyAny>>)],
    tables: &Bound<'py, PyDict>,
    breathe: &Bound<'py, PyAny>,
) -> PyResult<Raised> {
    let (mut failures, mut interrupt) = (Vec::new(), None);
    for (view, listeners) in audience {
        let Some(delta) = tables.get_item(view)? else { continue };
        if delta.getattr("num_rows")?.extract::<usize>()? == 0 {
            continue;
        }
        for listener in listeners {
            for _ in 0..PENDING {
                let Err(raised) = breathe.call0() else { break };
                interrupt.get_or_insert(raised);
            }
            if listener.getattr("cancelled")?.is_truthy()? {
                continue; // by a callback before it
            }
            if let Err(raised) = listener.getattr("callback")?.call1((&delta,)) {
                if raised.is_instance_of::<pyo3::exceptions::PyException>(py) {
                    failures.push((*view, raised));
                } else {
                    interrupt.get_or_insert(raised);
                }
            }
        }
    }
    Ok((failures, interrupt))
}

fn write(notes: Vec<Note<'_>>) -> PyResult<()> {
    notes.into_iter().try_for_each(|(object, attribute, value)| object.setattr(attribute, value))
}
