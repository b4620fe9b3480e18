//! The addresses that stand in for names: 198.18.0.0/15, which no public host has. The map is part of a checkpoint, so that a
//! program that has looked a name up can still connect after a restore.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::rc::Rc;

/// The most names that are remembered; the least recently used is forgotten first.
const MAX_NAMES: usize = 16 * 1024;
const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const COUNT: u32 = 1 << 17;

struct StandIn {
    name: Rc<str>,
    used: u64,
}

#[derive(Default)]
pub struct StandIns {
    /// Each address by its place in the range.
    by_place: HashMap<u32, StandIn>,
    places: HashMap<Rc<str>, u32>,
    by_use: BTreeMap<u64, u32>,
    uses: u64,
    /// The whole range is gone through before an address gets another name.
    last_place: u32,
}

impl StandIns {
    /// The address of a name, the same each time.
    pub fn address_of(&mut self, name: &str) -> Ipv4Addr {
        let place = match self.places.get(name) {
            Some(place) => *place,
            None => self.add(name),
        };
        self.touch(place);
        Ipv4Addr::from(FIRST + place)
    }

    /// The name that an address stands for.
    pub fn name_of(&mut self, address: Ipv4Addr) -> Option<Rc<str>> {
        let place = u32::from(address).checked_sub(FIRST)?;
        let name = Rc::clone(&self.by_place.get(&place)?.name);
        self.touch(place);
        Some(name)
    }

    fn add(&mut self, name: &str) -> u32 {
        if self.places.len() >= MAX_NAMES {
            self.forget_oldest();
        }
        let place = self.next_place();
        let name: Rc<str> = name.into();
        self.places.insert(Rc::clone(&name), place);
        self.by_place.insert(place, StandIn { name, used: 0 });
        place
    }

    /// Some programs avoid the first and last address of a network.
    fn next_place(&mut self) -> u32 {
        loop {
            self.last_place = (self.last_place + 1) % COUNT;
            if !matches!(self.last_place & 0xff, 0 | 0xff) && !self.by_place.contains_key(&self.last_place) {
                return self.last_place;
            }
        }
    }

    fn touch(&mut self, place: u32) {
        let Some(stand_in) = self.by_place.get_mut(&place) else { return };
        self.by_use.remove(&stand_in.used);
        self.uses += 1;
        stand_in.used = self.uses;
        self.by_use.insert(self.uses, place);
    }

    fn forget_oldest(&mut self) {
        let Some((_, place)) = self.by_use.pop_first() else { return };
        if let Some(stand_in) = self.by_place.remove(&place) {
            self.places.remove(&stand_in.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_name_one_address_and_finds_it_by_that() {
        let mut stand_ins = StandIns::default();
        let first = stand_ins.address_of("pypi.org");
        let second = stand_ins.address_of("example.com");
        assert_eq!(first, Ipv4Addr::new(198, 18, 0, 1));
        assert_ne!(first, second);
        assert_eq!(stand_ins.address_of("pypi.org"), first);
        assert_eq!(stand_ins.name_of(second).as_deref(), Some("example.com"));
        assert_eq!(stand_ins.name_of(Ipv4Addr::new(198, 19, 0, 1)), None);
        assert_eq!(stand_ins.name_of(Ipv4Addr::new(127, 0, 0, 1)), None);
    }

    #[test]
    fn forgets_the_least_recently_used_name_and_reuses_its_address_last() {
        let mut stand_ins = StandIns::default();
        let kept = stand_ins.address_of("kept");
        let lost = stand_ins.address_of("lost");
        let mut addresses = std::collections::HashSet::from([kept, lost]);
        for number in 0..MAX_NAMES {
            assert!(stand_ins.name_of(kept).is_some());
            assert!(addresses.insert(stand_ins.address_of(&number.to_string())), "an address was reused");
        }
        assert_eq!(stand_ins.name_of(lost), None);
        assert_eq!(stand_ins.places.len(), MAX_NAMES);
        assert_eq!((stand_ins.by_place.len(), stand_ins.by_use.len()), (MAX_NAMES, MAX_NAMES));
        // The rest of the range has to be used up first.
        let usable = COUNT as usize / 256 * 254;
        for number in MAX_NAMES..usable - 2 {
            assert!(addresses.insert(stand_ins.address_of(&number.to_string())), "an address was reused at {number}");
        }
        assert!(!addresses.insert(stand_ins.address_of("once around")));
    }
}
