//! The part of DNS that a stub resolver speaks.

pub mod answer;
pub mod query;
pub mod record_type;
pub mod reply_to;
