use evb_core::NodeId;
use evb_transport::*;
use evb_transport_ethernet::*;
use std::time::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let size: usize = a[3].parse().unwrap();
    let n: u64 = a[4].parse().unwrap();
    let token = Token::new([5; 32]);
    let open = |node: u16, name: &str| {
        let w = open_interface(name, NodeId(node), &token).unwrap();
        Endpoint::open(NodeId(node), EthernetOptions::new(2, token), w).unwrap()
    };
    let (mut tx, mut rx) = (open(0, &a[1]), open(1, &a[2]));
    let t = std::thread::spawn(move || {
        rx.connect(&[NodeId(0)]).unwrap();
        let mut sink = Vec::new();
        let mut got = 0;
        let mut polls = 0u64;
        while got < n {
            polls += 1;
            let c = rx.receive(64, &mut sink);
            got += c as u64;
            sink.clear();
            if c == 0 { std::thread::yield_now(); }
        }
        println!("rx {:?} polls {polls}", rx.counts());
        rx
    });
    tx.connect(&[NodeId(1)]).unwrap();
    let start = Instant::now();
    let body = bytes::Bytes::from(vec![7; size]);
    let mut full = 0u64;
    for _ in 0..n {
        while tx.send(NodeId(1), Message { head: [0; 32], body: body.clone() }).is_err() { full += 1; tx.flush(); std::thread::yield_now(); }
    }
    while !tx.flush() {}
    let rx = t.join().unwrap();
    let e = start.elapsed();
    println!("{:.3} s, {:.3} M/s, {:.1} MB/s full {full} {:?}", e.as_secs_f64(), n as f64 / e.as_secs_f64() / 1e6, (n as usize * size) as f64 / e.as_secs_f64() / 1e6, tx.counts());
    drop((tx, rx));
}
