//! Lets other calls run during a long one.

use std::time::{Duration, Instant};
use tokio::task::yield_now;

const SLICE: Duration = Duration::from_millis(1);
/// Steps between two readings of the clock.
const STEPS: u32 = 8;

pub struct TimeSlice {
    began: Instant,
    steps: u32,
}

impl Default for TimeSlice {
    fn default() -> Self {
        Self { began: Instant::now(), steps: 0 }
    }
}

impl TimeSlice {
    /// Call it for every entry.
    pub async fn step(&mut self) {
        self.steps += 1;
        if self.steps >= STEPS {
            self.steps = 0;
            if self.began.elapsed() >= SLICE {
                yield_now().await;
                self.began = Instant::now();
            }
        }
    }
}
