//! What a TCP endpoint is told.

use crate::DEFAULT_MAX_BODY;
use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

/// What a TCP endpoint is told: addresses, the run's token and the limits.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// Where peers connect to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// What all nodes of this run know and nobody else.
    pub token: Token,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest silence of a peer, and of this node towards its peers.
    pub peer_timeout: Duration,
    /// Longest time that [`Tcp::connect`](super::Tcp::connect) takes.
    pub connect_timeout: Duration,
    /// Longest time that a connection may take to show the token.
    pub handshake_timeout: Duration,
    /// Longest body in bytes, sent and received.
    pub max_body: usize,
    /// Most bytes that wait for one peer, headers included. One message always fits.
    pub send_queue_bytes: usize,
    /// Size of the system's socket buffers in bytes; `None` leaves them to the system, which lets them grow. Below
    /// 64 KiB a loopback connection may stall for seconds: the system drops segments that do not fit.
    pub socket_buffer_bytes: Option<usize>,
}

impl TcpOptions {
    /// The defaults: this machine only, 10 s of silence, 30 s to connect, 64 MiB bodies, 4 MiB waiting for each peer.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            token,
            nodes,
            peer_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(2),
            max_body: DEFAULT_MAX_BODY,
            send_queue_bytes: 4 << 20,
            socket_buffer_bytes: None,
        }
    }
}

/// The secret of a run: a peer that does not show it is refused.
#[derive(Clone, Copy)]
pub struct Token(pub(super) [u8; Token::BYTES]);

impl Token {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// The token with these bytes, which the caller draws from a good source.
    #[must_use]
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The token as 64 hexadecimal digits, as [`str::parse`] takes them: for handing it to another process.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares in a time that does not depend on where the first difference is.
    pub(super) fn matches(&self, other: &[u8; Self::BYTES]) -> bool {
        let difference = self.0.iter().zip(other).fold(0, |all, (mine, theirs)| all | (mine ^ theirs));
        std::hint::black_box(difference) == 0
    }
}

/// Takes a time that does not depend on where the first difference is.
impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for Token {}

/// Tokens stay out of logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A text is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is {digits} hexadecimal digits", digits = 2 * Token::BYTES)]
pub struct TokenError;

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).map(|value| value as u8))
            .collect::<Option<_>>()
            .ok_or(TokenError)?;
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(TokenError) };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        bytes.try_into().map(Self).map_err(|_| TokenError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_from_text_and_hide_from_logs() {
        let token = Token::new(std::array::from_fn(|index| index as u8 * 7));
        let text = token.to_hex();
        assert!(text.parse::<Token>().unwrap().matches(&token.0));
        assert_eq!(format!("{token:?}"), "Token(..)");
        let mut other = token.0;
        other[31] ^= 1;
        assert!(!token.matches(&other));
        for wrong in ["", "0", &text[1..], &format!("{text}00"), &text.replace('0', "g"), &text.replace('0', "é")] {
            assert_eq!(wrong.parse::<Token>().unwrap_err(), TokenError, "{wrong}");
        }
    }
}
