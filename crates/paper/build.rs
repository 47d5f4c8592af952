//! Compiles the crate again when a file of the papers has changed: embedding a folder does not see that by itself.

fn main() {
    println!("cargo:rerun-if-changed=../../papers");
}
