//! The secret that the nodes of one run share.

use crate::failure::Failure;
use evb::Token;

/// The environment variable that carries the token.
pub(crate) const TOKEN_VARIABLE: &str = "EVB_TOKEN";

/// A new token, for a run that starts its own nodes.
pub(crate) fn fresh() -> Result<Token, Failure> {
    let mut bytes = [0; Token::BYTES];
    getrandom::fill(&mut bytes).map_err(Failure::new)?;
    Ok(Token::new(bytes))
}

/// The token in the next line of standard input.
pub(crate) fn from_stdin() -> Result<Token, Failure> {
    let line = std::io::stdin().lines().next().transpose()?;
    let line = line.ok_or_else(|| Failure::new("standard input is empty"))?;
    line.parse().map_err(Failure::new)
}

/// The token that people have given to all nodes of a run.
pub(crate) fn shared() -> Result<Token, Failure> {
    let make =
        format!("make one with `export {TOKEN_VARIABLE}=$(openssl rand -hex 32)` and set the same on every machine");
    let text =
        std::env::var(TOKEN_VARIABLE).map_err(|_| Failure::with_hint(format!("{TOKEN_VARIABLE} is not set"), &make))?;
    text.trim().parse().map_err(|error| Failure::with_hint(format!("{TOKEN_VARIABLE}: {error}"), &make))
}
