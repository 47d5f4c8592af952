//! `[sweep]`: keys that take several values, and the points that they make.

use crate::{
    diagnostics::Problem,
    limits::{MAX_FOUND, MAX_SWEEP_POINTS},
    parse::known,
    print::inline,
    tree::{Entry, Node, Origin, Table, Value},
};

/// The swept keys in the order of the file; the last one runs fastest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sweep(Vec<Axis>);

#[derive(Clone, Debug)]
struct Axis {
    /// The key, or several with commas between them: all get the same value, or each its own from a list.
    path: String,
    key_origin: Option<Origin>,
    values: Vec<Node>,
}

impl Axis {
    fn keys(&self) -> impl Iterator<Item = &str> {
        keys(&self.path)
    }

    /// The values of each of its keys at one value of the axis.
    fn values<'a>(&'a self, value: &'a Node) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let many = self.keys().count();
        let own = value.list().filter(|values| many > 1 && values.len() == many);
        self.keys().enumerate().map(move |(index, key)| (key, own.map_or(value, |values| &values[index])))
    }

    /// True if each key has a separate value at this value of the axis.
    fn is_split(&self, value: &Node) -> bool {
        self.values(value).any(|(_, of_key)| !std::ptr::eq(of_key, value))
    }
}

fn keys(path: &str) -> impl Iterator<Item = &str> {
    path.split(',').map(str::trim)
}

impl Sweep {
    /// Takes the sweep out of the tree. A key that was set on the command line is swept no longer.
    pub(crate) fn take(root: &mut Node, set: &[String]) -> Result<Self, Vec<Problem>> {
        let Value::Table(table) = &mut root.value else { return Ok(Self::default()) };
        let Some(node) = table.take("sweep") else { return Ok(Self::default()) };
        let Some(entries) = node.table() else {
            let help = "write [sweep], and below it keys with lists, such as \"builder.units\" = [2, 4, 8]";
            return Err(vec![Problem::new("`sweep` must be a table", help).at(node.origin, "not a table")]);
        };
        let (mut axes, mut problems) = (Vec::new(), Vec::new());
        collect(entries, "", &mut axes, &mut problems);
        axes.retain(|axis: &Axis| !set.iter().any(|path| axis.keys().any(|key| overlap(path, key))));
        problems.extend(overlaps(&axes));
        problems.extend(too_many(&axes, node.origin));
        problems.truncate(MAX_FOUND);
        if problems.is_empty() { Ok(Self(axes)) } else { Err(problems) }
    }

    /// Number of points, at least 1.
    pub(crate) fn points(&self) -> usize {
        self.0.iter().map(|axis| axis.values.len()).product()
    }

    /// The keys and values at a point.
    fn at(&self, mut point: usize) -> Vec<(&Axis, &Node)> {
        let mut chosen = Vec::with_capacity(self.0.len());
        for axis in self.0.iter().rev() {
            chosen.push((axis, &axis.values[point % axis.values.len()]));
            point /= axis.values.len();
        }
        chosen.reverse();
        chosen
    }

    /// Every value, with the path of its key.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.0.iter_mut().flat_map(|axis| {
            let path = &*axis.path;
            // Folders are anchored, even if other keys get the same value.
            let key = keys(path).find(|key| key.starts_with("data")).unwrap_or(path);
            axis.values.iter_mut().map(move |value| (key, value))
        })
    }

    /// Puts the values of a point into the tree.
    pub(crate) fn apply(&self, point: usize, root: &mut Node) -> Result<(), Vec<Problem>> {
        for (axis, value) in self.at(point) {
            for (key, value) in axis.values(value) {
                let steps: Vec<&str> = key.split('.').collect();
                if !root.put(&steps, axis.key_origin, value.clone()) {
                    let message = format!("`{key}` leads past the end of a list");
                    let help = "tables in a list are counted from 0";
                    return Err(vec![Problem::new(message, help).at(axis.key_origin, "no such table")]);
                }
            }
        }
        Ok(())
    }

    /// The keys and values of a point as texts.
    pub(crate) fn names(&self, point: usize) -> Vec<(String, String)> {
        let value = |node: &Node| node.text().map_or_else(|| inline(&node.value), str::to_owned);
        let names = |(axis, node): (&Axis, &Node)| match axis.is_split(node) {
            true => axis.values(node).map(|(key, node)| (key.to_owned(), value(node))).collect(),
            false => vec![(axis.path.clone(), value(node))],
        };
        self.at(point).into_iter().flat_map(names).collect()
    }

    /// The section as it is written, or nothing.
    pub(crate) fn table(&self) -> Option<Table> {
        let entry = |axis: &Axis| Entry {
            key: axis.path.clone(),
            key_origin: None,
            node: Value::List(axis.values.clone()).into(),
        };
        (!self.0.is_empty()).then(|| Table(self.0.iter().map(entry).collect()))
    }
}

/// Finds the lists: `"a.b" = [..]` and `a.b = [..]` mean the same.
fn collect(table: &Table, parent: &str, axes: &mut Vec<Axis>, problems: &mut Vec<Problem>) {
    for entry in table.0.iter() {
        if problems.len() >= MAX_FOUND {
            return;
        }
        let path = if parent.is_empty() { entry.key.clone() } else { format!("{parent}.{}", entry.key) };
        match &entry.node.value {
            Value::Table(inner) => collect(inner, &path, axes, problems),
            _ => match axis(path, entry) {
                Ok(axis) => axes.push(axis),
                Err(problem) => problems.push(problem),
            },
        }
    }
}

fn axis(path: String, entry: &Entry) -> Result<Axis, Problem> {
    keys(&path).try_for_each(known).map_err(|(message, help)| {
        Problem::new(format!("{message} in [sweep]"), help).at(entry.key_origin, "unknown key")
    })?;
    let example = "give the values in a list, such as [2, 4, 8]";
    match entry.node.list() {
        None => Err(Problem::new(format!("the values of {path:?} in [sweep] must be a list"), example)
            .at(entry.node.origin, "not a list")),
        Some([]) => Err(Problem::new(format!("the list of values of {path:?} in [sweep] is empty"), example)
            .at(entry.node.origin, "no values")),
        Some(values) => Ok(Axis { path, key_origin: entry.key_origin, values: values.to_vec() }),
    }
}

/// True if one path is the other or leads to it.
fn overlap(one: &str, other: &str) -> bool {
    let leads = |short: &str, long: &str| long.strip_prefix(short).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    leads(one, other) || leads(other, one)
}

fn overlaps(axes: &[Axis]) -> Option<Problem> {
    // More keys than points are allowed would have been refused anyway.
    let axes = &axes[..axes.len().min(MAX_SWEEP_POINTS)];
    axes.iter().enumerate().find_map(|(index, axis)| {
        let clash = |other: &&Axis| other.keys().any(|one| axis.keys().any(|key| overlap(one, key)));
        let other = axes[..index].iter().find(clash)?;
        let message = format!("{:?} and {:?} in [sweep] set the same key", other.path, axis.path);
        let problem = Problem::new(message, "sweep one of the two");
        Some(problem.at(other.key_origin, "first").at(axis.key_origin, "again"))
    })
}

fn too_many(axes: &[Axis], origin: Option<Origin>) -> Option<Problem> {
    let points = axes.iter().try_fold(1_usize, |points, axis| points.checked_mul(axis.values.len()));
    if axes.len() <= MAX_SWEEP_POINTS && points.is_some_and(|points| points <= MAX_SWEEP_POINTS) {
        return None;
    }
    let count = points.map_or("more than 2^64".to_owned(), |points| points.to_string());
    let message = format!("the sweep of {} keys has {count} points, the most is {MAX_SWEEP_POINTS}", axes.len());
    Some(Problem::new(message, "sweep fewer keys or values, or write several files").at(origin, "too many points"))
}
