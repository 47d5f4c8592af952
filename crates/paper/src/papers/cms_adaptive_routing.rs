//! TODO

use crate::{PaperError, Results, sheet::Sheet};

pub(crate) fn reproduce(_results: &Results, _sheet: &mut Sheet) -> Result<(), PaperError> {
    Ok(())
}
