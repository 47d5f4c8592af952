//! The declarations against the headers that are installed, and an endpoint that talks to itself.

use super::{abi::*, endpoint::*, info::InfoList};
use bytes::Bytes;
use std::{
    fmt::Write,
    mem::{offset_of, size_of},
    process::Command,
    time::{Duration, Instant},
};

/// C's name and field, and the offset here or, without a field, the size.
fn layout() -> Vec<(&'static str, &'static str, usize)> {
    macro_rules! fields {
        ($list:ident, $c:literal, $rust:ident, $($c_field:literal $field:ident),*) => {
            $($list.push((concat!("struct ", $c), $c_field, offset_of!($rust, $field)));)*
        };
    }
    let mut list = vec![
        ("struct fi_tx_attr", "", size_of::<TxAttr>()),
        ("struct fi_rx_attr", "", size_of::<RxAttr>()),
        ("struct fi_av_attr", "", size_of::<AvAttr>()),
        ("struct fi_cq_attr", "", size_of::<CqAttr>()),
        ("struct fi_cq_tagged_entry", "", size_of::<CqEntry>()),
        ("struct fid", "", size_of::<Fid>()),
        ("struct fi_info", "", size_of::<Info>()),
    ];
    fields!(list, "fi_info", Info, "mode" mode, "tx_attr" tx_attr, "rx_attr" rx_attr, "ep_attr" ep_attr,
        "domain_attr" domain_attr, "fabric_attr" fabric_attr, "src_addr" src_addr);
    fields!(list, "fi_tx_attr", TxAttr, "inject_size" inject_size, "size" size);
    fields!(list, "fi_rx_attr", RxAttr, "size" size);
    fields!(list, "fi_ep_attr", EpAttr, "type" kind, "max_msg_size" max_msg_size, "mem_tag_format" mem_tag_format);
    fields!(list, "fi_domain_attr", DomainAttr, "threading" threading, "control_progress" control_progress,
        "data_progress" data_progress, "resource_mgmt" resource_mgmt, "av_type" av_type, "mr_mode" mr_mode);
    fields!(list, "fi_fabric_attr", FabricAttr, "prov_name" prov_name);
    fields!(list, "fid", Fid, "ops" ops);
    fields!(list, "fi_ops", FidOps, "close" close, "bind" bind, "control" control);
    fields!(list, "fid_fabric", Fabric, "ops" ops);
    fields!(list, "fi_ops_fabric", FabricOps, "domain" domain, "trywait" trywait);
    fields!(list, "fid_domain", Domain, "ops" ops, "mr" mr);
    fields!(list, "fi_ops_domain", DomainOps, "av_open" av_open, "cq_open" cq_open, "endpoint" endpoint);
    fields!(list, "fi_ops_mr", MrOps, "reg" reg);
    fields!(list, "fid_mr", Mr, "mem_desc" mem_desc, "key" key);
    fields!(list, "fi_av_attr", AvAttr, "type" kind, "flags" flags);
    fields!(list, "fid_av", Av, "ops" ops);
    fields!(list, "fi_ops_av", AvOps, "insert" insert);
    fields!(list, "fi_cq_attr", CqAttr, "size" size, "format" format, "wait_obj" wait_obj, "wait_set" wait_set);
    fields!(list, "fid_cq", Cq, "ops" ops);
    fields!(list, "fi_ops_cq", CqOps, "read" read, "readerr" readerr);
    fields!(list, "fi_cq_tagged_entry", CqEntry, "op_context" op_context, "len" len, "tag" tag);
    fields!(list, "fi_cq_err_entry", CqError, "op_context" op_context, "tag" tag, "err" err,
        "err_data_size" err_data_size);
    fields!(list, "fid_ep", Ep, "ops" ops, "cm" cm, "tagged" tagged);
    fields!(list, "fi_ops_ep", EpOps, "cancel" cancel);
    fields!(list, "fi_ops_cm", CmOps, "getname" getname);
    fields!(list, "fi_ops_tagged", TaggedOps, "recv" recv, "send" send, "inject" inject);
    list
}

const CONSTANTS: &[(&str, u64)] = &[
    ("FI_TAGGED", FI_TAGGED),
    ("FI_RECV", FI_RECV),
    ("FI_SEND", FI_SEND),
    ("FI_TRANSMIT", FI_TRANSMIT),
    ("FI_SOURCE", FI_SOURCE),
    ("FI_CONTEXT", FI_CONTEXT),
    ("FI_CONTEXT2", FI_CONTEXT2),
    ("FI_EP_RDM", FI_EP_RDM as u64),
    ("FI_THREAD_DOMAIN", FI_THREAD_DOMAIN as u64),
    ("FI_PROGRESS_MANUAL", FI_PROGRESS_MANUAL as u64),
    ("FI_RM_ENABLED", FI_RM_ENABLED as u64),
    ("FI_CQ_FORMAT_TAGGED", FI_CQ_FORMAT_TAGGED as u64),
    ("FI_WAIT_NONE", FI_WAIT_NONE as u64),
    ("FI_WAIT_FD", FI_WAIT_FD as u64),
    ("FI_GETWAIT", FI_GETWAIT as u64),
    ("FI_ENABLE", FI_ENABLE as u64),
    ("FI_MR_LOCAL", FI_MR_LOCAL as u64),
    ("FI_MR_VIRT_ADDR", FI_MR_VIRT_ADDR as u64),
    ("FI_MR_ALLOCATED", FI_MR_ALLOCATED as u64),
    ("FI_MR_PROV_KEY", FI_MR_PROV_KEY as u64),
    ("FI_MR_ENDPOINT", FI_MR_ENDPOINT as u64),
    ("FI_EAGAIN", FI_EAGAIN as u64),
    ("FI_ENOMEM", FI_ENOMEM as u64),
    ("FI_ADDR_UNSPEC", FI_ADDR_UNSPEC),
    ("FI_VERSION(1, 14)", VERSION as u64),
];

/// A C program that prints C's numbers, one per line.
fn program() -> String {
    let headers = ["fabric", "fi_domain", "fi_endpoint", "fi_tagged", "fi_cm", "fi_eq", "fi_errno"];
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    headers.iter().for_each(|header| writeln!(text, "#include <rdma/{header}.h>").unwrap());
    text.push_str("int main(void) {\n");
    for (kind, field, _) in layout() {
        let value = if field.is_empty() { format!("sizeof({kind})") } else { format!("offsetof({kind}, {field})") };
        writeln!(text, "printf(\"%zu\\n\", (size_t) {value});").unwrap();
    }
    for (name, _) in CONSTANTS {
        writeln!(text, "printf(\"%llu\\n\", (unsigned long long) {name});").unwrap();
    }
    text + "return 0; }\n"
}

#[test]
fn declarations_are_those_of_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
    std::fs::write(&source, program()).unwrap();
    let Ok(built) = Command::new("cc").arg(&source).arg("-o").arg(&binary).output() else {
        return eprintln!("skipped: there is no C compiler to read the headers with");
    };
    let complaint = String::from_utf8_lossy(&built.stderr);
    if complaint.contains("rdma/fabric.h") && complaint.contains("No such file") {
        return eprintln!("skipped: libfabric's headers are not installed");
    }
    assert!(built.status.success(), "{complaint}");
    let output = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    let ours = layout().into_iter().map(|(kind, field, value)| (format!("{kind}.{field}"), value as u64));
    let ours: Vec<_> = ours.chain(CONSTANTS.iter().map(|&(name, value)| (name.to_owned(), value))).collect();
    let theirs: Vec<u64> = output.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(theirs.len(), ours.len());
    ours.iter().zip(&theirs).for_each(|((what, ours), theirs)| assert_eq!(ours, theirs, "{what}"));
}

/// The completion of this operation; others are skipped.
fn completed(endpoint: &mut Endpoint, wanted: super::Operation) -> Completion {
    let start = Instant::now();
    loop {
        let count = endpoint.poll();
        let found = (0..count).map(|index| endpoint.completion(index)).find(|done| done.operation == Some(wanted));
        if let Some(done) = found.or_else(|| endpoint.failure()) {
            return done;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no completion");
    }
}

fn talk_to_oneself(endpoint: &mut Endpoint) {
    let address = endpoint.address().unwrap();
    let me = endpoint.insert(&address).unwrap();
    let slab = endpoint.add_slab(2, 4096).unwrap();
    endpoint.memory_mut(slab[1])[..4].copy_from_slice(b"word");
    assert_eq!(endpoint.receive(slab[0], 0x70, 0xf), Posted::Yes);
    let start = Instant::now();
    while endpoint.send(slab[1], 4, me, 0x75) == Posted::Again {
        assert!(start.elapsed() < Duration::from_secs(60), "no way to oneself");
        endpoint.poll();
    }
    let done = completed(endpoint, slab[0]);
    assert_eq!((done.tag, done.bytes, done.error), (0x75, 4, None));
    assert_eq!(&endpoint.memory(slab[0])[..4], b"word");
    let (body, room) = (Bytes::from(vec![7; 100_000]), vec![0; 100_000]);
    let (sending, receiving) = (endpoint.share(body.clone()).unwrap(), endpoint.own(room).unwrap());
    assert_eq!(endpoint.receive(receiving, 0x99, 0), Posted::Yes);
    assert_eq!(endpoint.send(sending, body.len(), me, 0x99), Posted::Yes);
    assert_eq!(completed(endpoint, receiving).bytes, body.len());
    let Some(super::Memory::Own(received)) = endpoint.take(receiving) else { panic!("another memory") };
    assert!(received == body);
    let unwanted = endpoint.own(vec![0; 10]).unwrap();
    assert_eq!(endpoint.receive(unwanted, 0x123, 0), Posted::Yes);
    endpoint.cancel(unwanted);
    assert_eq!(
        completed(endpoint, unwanted).error.map(|error| endpoint.describe(error)),
        Some("operation canceled".into())
    );
}

#[test]
fn an_endpoint_talks_to_itself_with_and_without_registration() {
    for (provider, interface) in [("tcp", Some("127.0.0.1")), ("shm", None)] {
        let mut endpoint = match Endpoint::open(provider, interface, true) {
            Ok(endpoint) => endpoint,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        talk_to_oneself(&mut endpoint);
        let mut endpoint = Endpoint::open(provider, interface, false).unwrap();
        // Neither provider asks for this; both can do it.
        endpoint.register_always();
        talk_to_oneself(&mut endpoint);
    }
}

#[test]
fn a_missing_provider_is_answered_with_those_that_are_there() {
    let Ok(names) = super::providers() else { return eprintln!("skipped: there is no libfabric") };
    let error = InfoList::find("no-such-provider", None).map(drop).expect_err("there is none").to_string();
    assert!(error.contains("no-such-provider") && names.iter().all(|name| error.contains(name)), "{error}");
}
