//! Whole experiments, each small enough that its result is known from theory or a published measurement.

mod adaptive;
mod background;
mod bridges;
mod building;
mod connections;
mod contention;
mod cycles;
mod disks;
mod dragonflies;
mod ethernet;
mod fabric;
mod faults;
mod gather;
mod goodput;
mod hosts;
mod links;
mod low_diameter;
mod mapper;
mod mixed_rates;
mod offered;
mod pages;
mod published;
mod rates;
mod skew;
mod support;
mod theory;
