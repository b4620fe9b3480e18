//! Lets other calls have their turn while a long one goes on.

use std::time::{Duration, Instant};
use tokio::task::yield_now;

const TURN: Duration = Duration::from_millis(1);
/// Steps between two looks at the clock.
const STEPS: u32 = 8;

pub struct Pace {
    turn_began: Instant,
    steps: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { turn_began: Instant::now(), steps: 0 }
    }
}

impl Pace {
    /// To be called for every entry dealt with.
    pub async fn step(&mut self) {
        self.steps += 1;
        if self.steps >= STEPS {
            self.steps = 0;
            if self.turn_began.elapsed() >= TURN {
                yield_now().await;
                self.turn_began = Instant::now();
            }
        }
    }
}
