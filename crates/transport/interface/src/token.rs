//! The secret of a run, which every transport between processes demands from its peers.

use std::{fmt, str::FromStr};

/// The secret of a run: a peer that does not show it is refused.
#[derive(Clone, Copy)]
pub struct Token([u8; Token::BYTES]);

impl Token {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// The token with these bytes, which must come from a cryptographic random source.
    #[must_use]
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The secret itself, for keys that are made of it.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The token as 64 hexadecimal digits, as [`str::parse`] takes them, for another process.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares in constant time: the duration does not depend on the position of the first difference.
    #[must_use]
    pub fn matches(&self, other: &[u8; Self::BYTES]) -> bool {
        let difference = self.0.iter().zip(other).fold(0, |all, (mine, theirs)| all | (mine ^ theirs));
        std::hint::black_box(difference) == 0
    }
}

/// Compares in constant time: the duration does not depend on the position of the first difference.
impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for Token {}

/// Hides the secret from logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A text is not a token.
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
