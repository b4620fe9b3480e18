//! Counts datagrams that nothing received. The network stack redirects UDP other than DNS to a closed port, so that a program
//! learns at once that it gets no answer.

use super::subscription::Subscription;
use crate::os::small_file::read_small_file;
use std::time::Duration;
use tokio::time::timeout;

const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// An idle sandbox must not use the CPU.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// Reports new ones soon after other traffic, and otherwise ever more rarely.
pub async fn watch(subscription: &Subscription) {
    let mut known = unreceived();
    let mut interval = FIRST_INTERVAL;
    loop {
        if timeout(interval, subscription.activity.notified()).await.is_ok() {
            // Datagrams often follow a query; they need a moment.
            tokio::time::sleep(FIRST_INTERVAL).await;
            interval = FIRST_INTERVAL;
        }
        let count = unreceived();
        if count > known {
            subscription.add_datagrams(count - known);
            interval = FIRST_INTERVAL;
        } else {
            interval = (interval * 2).min(LONGEST_INTERVAL);
        }
        known = count;
    }
}

/// Zero if the kernel does not tell.
fn unreceived() -> u64 {
    read_small_file("/proc/net/snmp").ok().and_then(|text| parse(&text)).unwrap_or(0)
}

/// A line of names, then a line of numbers.
fn parse(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let place = lines.next()?.split(' ').position(|name| name == "NoPorts")?;
    lines.next()?.split(' ').nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn finds_the_counter_by_its_name() {
        let text = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors\nUdp: 5 7 9\nUdpLite: NoPorts\nUdpLite: 1\n";
        assert_eq!(parse(text), Some(7));
        assert_eq!(parse("Udp: NoPorts\n"), None);
    }
}
