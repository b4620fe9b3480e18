//! Permission bits in a call's parameters.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u32")]
pub struct Mode(u32);

impl Mode {
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Mode {
    type Error = String;

    fn try_from(bits: u32) -> Result<Self, String> {
        if bits <= 0o7777 { Ok(Self(bits)) } else { Err(format!("mode must be 0 to 0o7777, not {bits:#o}")) }
    }
}
