//! Compiles the crate again when a file of the papers has changed: embedding a folder does not notice that.

fn main() {
    println!("cargo:rerun-if-changed=..");
}
