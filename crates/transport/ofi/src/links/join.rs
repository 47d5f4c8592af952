//! Joining of peers: both send a hello to the other's address, and each hears that it was accepted.

use super::Links;
use crate::{control::Acquaintance, ffi::Posted, peer::Peer};
use evb_core::NodeId;
use evb_transport::{ConnectError, JoinDeadline};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Pause between two checks for peers that do not answer yet.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

impl Links {
    /// This node's address: the provider's full name, a slash, and the provider's own address in hexadecimal digits.
    pub(crate) fn address(&self) -> String {
        let digits = self.endpoint.address().unwrap_or_default();
        let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/{digits}", self.provider())
    }

    /// Joins these peers.
    pub(crate) fn join(&mut self, peers: &[(NodeId, String)]) -> Result<(), ConnectError> {
        for (peer, text) in peers {
            let there = self.peers.get(peer.index());
            if *peer == self.local || !matches!(there, Some(None)) {
                return Err(ConnectError::Peer(*peer));
            }
            let bad = |reason| ConnectError::Address { peer: *peer, text: text.clone(), reason };
            let bytes = self.parse(text).map_err(bad)?;
            let address = self.endpoint.insert(&bytes).map_err(|error| bad(error.to_string()))?;
            self.expect(*peer, address);
        }
        self.greet_all(peers)
    }

    fn parse(&self, text: &str) -> Result<Vec<u8>, String> {
        let mine = self.address();
        let (provider, digits) = text.split_once('/').ok_or("a provider, a slash and hexadecimal digits are wanted")?;
        if provider != self.provider() {
            return Err(format!("this node uses the provider {}", self.provider()));
        }
        let digits: Option<Vec<u8>> = digits.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0 && !digits.is_empty());
        let bytes: Vec<u8> = digits
            .ok_or("the digits are not hexadecimal pairs")?
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        // Addresses that are structures have one length; those that are texts end with a zero.
        if text.len() != mine.len() && bytes.last() != Some(&0) {
            return Err("it is cut or has too much".into());
        }
        Ok(bytes)
    }

    fn expect(&mut self, node: NodeId, address: u64) {
        // Without randomness from the system a key is a guess, but tokens still keep strangers out.
        let key = self.tags.low(getrandom::u64().unwrap_or_default());
        let acquaintance = Acquaintance::new(getrandom::u64().unwrap_or_default());
        let peer = Peer::new(address, key, acquaintance, self.terms.credits, Instant::now());
        self.peers[node.index()] = Some(Box::new(peer));
        if let Some(hello) = self.early[node.index()].take() {
            self.meet(node.index(), &hello);
        }
    }

    fn greet_all(&mut self, peers: &[(NodeId, String)]) -> Result<(), ConnectError> {
        let deadline = JoinDeadline::new(&self.options.endpoint);
        let mut ungreeted: Vec<_> = peers.iter().map(|(peer, _)| peer.index()).collect();
        loop {
            ungreeted.retain(|&index| self.send_hello(index, None) == Posted::Again);
            self.poll();
            ungreeted.extend(self.unanswered());
            ungreeted.sort_unstable();
            ungreeted.dedup();
            let mut missing = Vec::new();
            for (node, address) in peers {
                if !self.is_there(*node, address)? {
                    missing.push(*node);
                }
            }
            if missing.is_empty() && self.owing.is_empty() && ungreeted.is_empty() {
                self.last_tick = Instant::now();
                return Ok(());
            }
            missing.sort_unstable();
            deadline.check(missing, || None)?;
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_there(&mut self, node: NodeId, address: &str) -> Result<bool, ConnectError> {
        let Some(peer) = self.peer(node.index()) else { return Ok(false) };
        match (&peer.refused, &peer.failure) {
            (Some(refusal), _) => Err(ConnectError::Refused { peer: node, address: address.into(), refusal: *refusal }),
            (None, Some(reason)) => Err(ConnectError::Lost { peer: node, reason: reason.clone() }),
            _ => Ok(peer.known && peer.accepted),
        }
    }
}
