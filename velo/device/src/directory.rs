//! Names of devices. A name is two sockets in the abstract namespace, which the system frees when their owner ends, however
//! it ends: one keeps the name unique, the other carries the address in its own name. Looking up a name reads the system's
//! list of sockets.

use crate::Address;
use std::{
    io,
    os::linux::net::SocketAddrExt,
    os::unix::net::{SocketAddr, UnixDatagram},
};

/// A held name, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Name {
    _unique: UnixDatagram,
    _address: UnixDatagram,
}

fn prefix(name: &str) -> String {
    format!("evbvelo/{}/{name}", rustix::process::geteuid().as_raw())
}

fn bind(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Names have 1 to 32 characters out of `A-Za-z0-9._-`, so that no two lists of sockets read alike.
pub(crate) fn is_valid(name: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    (1..=32).contains(&name.len()) && name.chars().all(fits)
}

/// Takes a name.
pub(crate) fn publish(name: &str, address: Address) -> io::Result<Name> {
    let unique = bind(&prefix(name))?;
    let Address { process, file, nonce } = address;
    Ok(Name { _unique: unique, _address: bind(&format!("{}/{process}/{file}/{nonce:x}", prefix(name)))? })
}

/// The address with this name, if there is one.
pub(crate) fn find(name: &str) -> io::Result<Option<Address>> {
    let (sockets, start) = (std::fs::read_to_string("/proc/net/unix")?, format!("@{}/", prefix(name)));
    let parse = |rest: &str| {
        let mut parts = rest.split('/');
        let (process, file) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let nonce = u64::from_str_radix(parts.next()?, 16).ok()?;
        parts.next().is_none().then_some(Address { process, file, nonce })
    };
    let names = sockets.lines().filter_map(|line| line.split_whitespace().last());
    Ok(names.filter_map(|name| name.strip_prefix(&start)).find_map(parse))
}
