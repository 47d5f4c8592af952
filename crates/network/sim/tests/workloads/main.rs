//! Whole experiments, each small enough that theory or a published measurement gives the expected result.

mod adaptive;
mod bridges;
mod building;
mod contention;
mod cycles;
mod disks;
mod ethernet;
mod faults;
mod gather;
mod hosts;
mod links;
mod mapper;
mod pages;
mod published;
mod rates;
mod support;
mod theory;
