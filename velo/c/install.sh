#!/bin/sh
# Installs libevbvelo: header, both libraries, and a file for pkg-config.
#
#   cargo build --release -p evb-velo-c
#   velo/c/install.sh PREFIX [FOLDER OF THE LIBRARIES, otherwise target/release]
set -eu
[ $# -ge 1 ] || { echo "usage: $0 PREFIX [FOLDER]" >&2; exit 2; }
crate=$(cd "$(dirname "$0")" && pwd)
prefix=$1
built=${2:-$crate/../../target/release}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$crate/../../Cargo.toml" | head -n 1)
install -d "$prefix/include" "$prefix/lib/pkgconfig"
install -m 644 "$crate/include/evbvelo.h" "$prefix/include/"
install -m 755 "$built/libevbvelo.so" "$prefix/lib/libevbvelo.so.0"
install -m 644 "$built/libevbvelo.a" "$prefix/lib/"
ln -sf libevbvelo.so.0 "$prefix/lib/libevbvelo.so"
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" "$crate/evbvelo.pc.in" > "$prefix/lib/pkgconfig/evbvelo.pc"
