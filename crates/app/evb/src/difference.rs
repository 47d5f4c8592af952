//! The first difference of two texts that are trees of keys.

use serde_json::{Map, Value};

/// Longest part of a value that is shown.
const LONGEST: usize = 60;

/// The first key whose values differ, as a sentence in which `there` names the place of the first tree and `here` that of
/// the second; `None` if there is no difference.
pub(crate) fn first_difference(there: (&str, &Value), here: (&str, &Value)) -> Option<String> {
    let (path, one, other) = differing(String::new(), Some(there.1), Some(here.1))?;
    Some(format!("`{path}` is {} in {} and {} in {}", shown(one), there.0, shown(other), here.0))
}

type Differing<'a> = (String, Option<&'a Value>, Option<&'a Value>);

fn differing<'a>(path: String, one: Option<&'a Value>, other: Option<&'a Value>) -> Option<Differing<'a>> {
    match (one, other) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => of_tables(&path, a, b),
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(n, (a, b))| differing(join(&path, &n.to_string()), Some(a), Some(b)))
        }
        _ => (one != other).then_some((path, one, other)),
    }
}

fn of_tables<'a>(path: &str, one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> Option<Differing<'a>> {
    let only_there = other.keys().filter(|key| !one.contains_key(*key));
    one.keys().chain(only_there).find_map(|key| differing(join(path, key), one.get(key), other.get(key)))
}

fn join(path: &str, key: &str) -> String {
    let key = if key.contains('.') { format!("{key:?}") } else { key.to_owned() };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "not there".to_owned(), Value::to_string);
    let cut = text.chars().count() > LONGEST;
    if cut { text.chars().take(LONGEST).chain(['\u{2026}']).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_told_with_its_key() {
        let one = json!({"run": {"seed": 1}, "sweep": {"builder.units": [1, 2]}, "x": [{"y": 1}, {"y": 2}]});
        let told = |other: &Value| first_difference(("DIR", &one), ("FILE", other));
        assert_eq!(told(&one), None);
        let mut other = one.clone();
        other["x"][1]["y"] = json!("2");
        assert_eq!(told(&other).as_deref(), Some("`x.1.y` is 2 in DIR and \"2\" in FILE"));
        other["sweep"]["builder.units"] = json!([1, 2, 3]);
        assert_eq!(told(&other).as_deref(), Some("`sweep.\"builder.units\"` is [1,2] in DIR and [1,2,3] in FILE"));
        other["run"] = json!({});
        assert_eq!(told(&other).as_deref(), Some("`run.seed` is 1 in DIR and not there in FILE"));
        assert!(told(&json!(null)).is_some());
    }
}
