//! The decoder of a payload, as in the TOML file of a decoder of the Python package, and the values that it finds.

use crate::sections::framing::ORDER;
use crate::{
    diagnostics::Problem,
    limits::*,
    plan::{FieldLayout, NumberType, PayloadLayout, PayloadPart, Quantity},
    scalar::brief,
    schema::*,
    tree::Node,
    view::View,
};
use evb_sources::ByteOrder;

pub(super) const DECODER: &[Key] = &[
    key("byte_order", KeyKind::Word(&ORDER), KeyDefault::Text("little"), "byte order of all numbers"),
    optional("header", FIELDS, "fields that are there once, in front"),
    optional("items", FIELDS, "fields of an item, of which there are as many as fit; by default one byte"),
    optional("trailer", FIELDS, "fields that are there once, behind the items"),
];

const FIELDS: KeyKind = KeyKind::List { item: &KeyKind::Section(FIELD), most: MAX_FIELDS };

const FIELD: &[Key] = &[
    required("name", KeyKind::Name, "name of the field"),
    required(
        "type",
        KeyKind::Text,
        "type as NumPy names it: `u1`, `u2`, `u4`, `u8`, `i1`, `i2`, `i4`, `i8`, `f4`, `f8`, or `V` or `S` with a number of \
         bytes that are not counted",
    ),
    optional("count", integer(1, MAX_IN_FIELD), "makes the field an array; each number is counted"),
];

/// Names of the parts in the file, in the order in which a field is looked for.
const PARTS: [(&str, PayloadPart); 3] =
    [("items", PayloadPart::Items), ("header", PayloadPart::Header), ("trailer", PayloadPart::Trailer)];

/// The values that a table counts.
pub(super) fn quantity(table: View<'_>) -> Result<Quantity, Problem> {
    let layout = table.has("decoder").then(|| layout(table.below("decoder"))).transpose()?;
    let quantity = match (table.text("field"), layout) {
        ("size", _) => Quantity::Size,
        ("hits", Some(layout)) => Quantity::Hits(layout),
        (name, Some(layout)) => Quantity::Field(layout, field(table, name)?),
        (name, None) => {
            let message = format!("nothing says where {} is in a payload", brief(name));
            let help = "add decoder = { items = [{ name = \"charge\", type = \"u2\" }] }, or count the \"size\"";
            return Err(Problem::new(message, help).at(table.origin("field"), "no decoder"));
        }
    };
    if let Quantity::Size | Quantity::Hits(_) = quantity
        && table.has("bits")
    {
        let problem = Problem::new("`bits` are those of a field of the decoder", "leave them out");
        return Err(problem.at(table.origin("bits"), "of no field"));
    }
    Ok(quantity)
}

/// The sizes of all parts.
fn layout(decoder: View<'_>) -> Result<PayloadLayout, Problem> {
    let size = |part: &str| -> Result<u32, Problem> {
        decoder.list(part).iter().try_fold(0, |sum: u32, node| Ok(sum.saturating_add(size_of(View(node))?)))
    };
    let item = if decoder.has("items") { size("items")? } else { 1 };
    if item == 0 {
        let help = "add a field such as { name = \"charge\", type = \"u2\" }, or leave `items` out for single bytes";
        return Err(Problem::new("an item of the decoder has no field", help).at(decoder.origin("items"), "empty"));
    }
    Ok(PayloadLayout { header: size("header")?, item, trailer: size("trailer")? })
}

/// Bytes of a field.
fn size_of(field: View<'_>) -> Result<u32, Problem> {
    let text = field.text("type");
    let each = match NumberType::named(text) {
        Some(number) => Some(number.bytes()),
        None => text.strip_prefix(['V', 'S']).and_then(|digits| digits.parse().ok()),
    };
    let each = each.filter(|bytes| (1..=MAX_IN_FIELD as u32).contains(bytes));
    let count = field.maybe_integer("count").unwrap_or(1);
    each.map(|each| each.saturating_mul(count)).ok_or_else(|| {
        let known: Vec<_> = NumberType::NAMED.iter().map(|(name, _)| *name).collect();
        let help = format!("write {}, or V and a number of bytes for what is not counted", known.join(", "));
        Problem::new(format!("{} is not a type of a field", brief(text)), help).at(field.origin("type"), "unknown type")
    })
}

/// The place of the field with this name, which may begin with that of its part.
fn field(table: View<'_>, name: &str) -> Result<FieldLayout, Problem> {
    let decoder = table.below("decoder");
    let found: Vec<_> = PARTS.into_iter().filter_map(|part| in_part(decoder, part, name)).collect();
    match found[..] {
        [(part, at, node)] => layout_of(table, decoder, (part, at, View(node))),
        [] => {
            let known =
                PARTS.iter().flat_map(|(part, _)| decoder.list(part)).filter_map(|node| node.at("name")?.text());
            let help = format!("it has {}; \"size\" and \"hits\" need none", quoted(known));
            let problem = Problem::new(format!("the decoder has no field {}", brief(name)), help);
            Err(problem.at(table.origin("field"), "no such field"))
        }
        _ => {
            let problem = Problem::new(
                format!("several fields of the decoder have the name {}", brief(name)),
                format!("write the part in front, as \"items.{name}\" or \"header.{name}\", or rename one of them"),
            );
            Err(problem.at(table.origin("field"), "which one?"))
        }
    }
}

/// The field with this name in a part, and the bytes of the part before it. Two of one name in a part are found as the
/// first: NumPy refuses them.
fn in_part<'a>(
    decoder: View<'a>,
    (part_name, part): (&str, PayloadPart),
    name: &str,
) -> Option<(PayloadPart, u32, &'a Node)> {
    let is_named = |node: &Node| {
        let own = View(node).text("name");
        own == name || name.strip_prefix(part_name).and_then(|rest| rest.strip_prefix('.')) == Some(own)
    };
    let fields = decoder.list(part_name);
    let place = fields.iter().position(is_named)?;
    let before = fields[..place].iter().filter_map(|node| size_of(View(node)).ok());
    Some((part, before.fold(0, u32::saturating_add), &fields[place]))
}

fn layout_of(
    table: View<'_>,
    decoder: View<'_>,
    (part, at, field): (PayloadPart, u32, View<'_>),
) -> Result<FieldLayout, Problem> {
    let number = NumberType::named(field.text("type")).ok_or_else(|| {
        let message = format!("the field {} has bytes of no meaning", brief(table.text("field")));
        let help = "give it the type of a number, such as \"u2\", or count another field";
        Problem::new(message, help).at(field.origin("type"), "no number").at(table.origin("field"), "counted here")
    })?;
    let count = field.maybe_integer("count").unwrap_or(1);
    let big_endian = ORDER.at(decoder, "byte_order") == ByteOrder::Big;
    let layout = FieldLayout { part, at, count, number, big_endian, bits: bits(table, number)? };
    if table.has("channels") && !number.is_whole() {
        let problem =
            Problem::new("the numbers of channels have no fraction", "count a whole number, or write `range`");
        return Err(problem.at(table.origin("channels"), "of channels").at(field.origin("type"), "with a fraction"));
    }
    Ok(layout)
}

/// The lowest and the highest bit that are counted.
fn bits(table: View<'_>, number: NumberType) -> Result<Option<(u8, u8)>, Problem> {
    if !table.has("bits") {
        return Ok(None);
    }
    let bits = (table.maybe_integer("bits.0"), table.maybe_integer("bits.1"));
    let width = 8 * number.bytes() as u8;
    match bits {
        (Some(low), Some(high)) if low <= high && high < width && number.is_unsigned() => Ok(Some((low, high))),
        _ => {
            let message = match number.is_unsigned() {
                true => format!("`bits` are not the lowest and the highest of a field of {width} bits"),
                false => "only unsigned numbers have `bits`".to_owned(),
            };
            let help = "write bits = [12, 15] for the four highest bits of a field of type \"u2\"";
            Err(Problem::new(message, help).at(table.origin("bits"), "not such bits"))
        }
    }
}
