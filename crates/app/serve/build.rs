//! Builds the crate again when a file of the page has changed: the macro that embeds them does not say that it reads them.

fn main() {
    println!("cargo::rerun-if-changed=page");
}
