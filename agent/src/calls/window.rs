//! The credit that a caller grants with the call that opens a stream.

use serde::Deserialize;

const MAX_WINDOW_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u64")]
pub struct Window(u64);

impl Window {
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for Window {
    type Error = String;

    fn try_from(bytes: u64) -> Result<Self, String> {
        if (1..=MAX_WINDOW_BYTES).contains(&bytes) {
            Ok(Self(bytes))
        } else {
            Err(format!("window must be 1 to {MAX_WINDOW_BYTES} bytes, not {bytes}"))
        }
    }
}
