fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let experiment = evb_experiment::Experiment::load(&args[0], &args[1..]).unwrap_or_else(|e| {
        eprintln!("{e:?}");
        std::process::exit(2)
    });
    for plan in experiment.plans() {
        let record = evb_sim::simulate(plan, None, &mut |_| true).unwrap();
        let s = record.simulation.as_ref().unwrap();
        println!(
            "{:?} {:?} good {} s={:.6} rate={:.0} thr={:.3e} eff={:.4} lat={:?} pkts={} hops={} wall={:.2}s  {:.2} Mhops/s lost {} notes {:?}",
            record.sweep,
            record.events,
            record.good,
            record.seconds,
            record.event_rate_hz,
            record.throughput_bytes_per_s,
            s.efficiency,
            record.latency_us,
            s.packets,
            s.packet_hops,
            s.wall_seconds,
            s.packet_hops as f64 / s.wall_seconds / 1e6,
            s.network.lost_packets,
            record.notes
        );
        if std::env::var("LINKS").is_ok() {
            for l in &s.network.links {
                println!("   {:?}", l);
            }
        }
    }
}
