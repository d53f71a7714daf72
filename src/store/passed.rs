//! What has passed all that it has to.

use crate::error::Result;
use crate::model::slot::PassedKey;
use crate::store::ReadStore;

impl dyn ReadStore + '_ {
    /// Whether content has passed each of these.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn have_passed(&self, keys: &[PassedKey]) -> Result<bool> {
        for key in keys {
            if self.passed(key).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
