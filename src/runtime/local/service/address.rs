//! Which address a service gets.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::runtime::local::host::address::number_of;

/// How many addresses are tried before the first one is taken whatever speaks against it.
const CANDIDATES: u32 = 32;

/// The addresses that a service may get, best first: the first one follows from its name alone.
///
/// All lie in 127.128.0.0/9, so that they never meet 127.0.0.1 or the pods' own addresses, and none ends in 0 or 255.
fn candidates(namespace: &str, name: &str) -> impl Iterator<Item = Ipv4Addr> {
    let start = number_of(&format!("{namespace}/{name}"));
    (0..CANDIDATES).map(move |step| spread(start.wrapping_add(step.wrapping_mul(0x9E37_79B1))))
}

/// Chooses a free address, not taken by another service, that `claim` could get on this machine; with what it got.
pub(super) fn choose<T: Default>(
    namespace: &str,
    name: &str,
    taken: &BTreeSet<Ipv4Addr>,
    claim: impl Fn(Ipv4Addr) -> Option<T>,
) -> Option<(Ipv4Addr, T)> {
    let free: Vec<_> = candidates(namespace, name).filter(|address| !taken.contains(address)).collect();
    let claimed = free.iter().find_map(|address| Some((*address, claim(*address)?)));
    claimed.or_else(|| Some((*free.first()?, T::default())))
}

/// Maps a number to an address; every address is about equally likely.
fn spread(number: u32) -> Ipv4Addr {
    let host = number % (128 * 256 * 254);
    let octet = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, octet(128 + host / (256 * 254)), octet(host / 254 % 256), octet(1 + host % 254))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_address_follows_from_the_name_and_never_changes() {
        let none = BTreeSet::new();
        let chosen = |namespace| choose(namespace, "web", &none, |_| Some(())).unwrap().0;
        let address = chosen("shop-dev");
        assert_eq!(address.to_string(), "127.203.53.61", "an address that was once given must stay");
        assert_ne!(chosen("shop-production"), address);
    }

    #[test]
    fn a_taken_or_unusable_address_is_passed_over() {
        let claim = |address: Ipv4Addr| Some(vec![address]);
        let (first, claimed) = choose("ns", "a", &BTreeSet::new(), claim).unwrap();
        let (second, _) = choose("ns", "a", &BTreeSet::from([first]), claim).unwrap();
        assert_ne!(first, second);
        assert_eq!(claimed, [first], "what was got comes along");
        let others = |address| claim(address).filter(|_| address != first);
        assert_eq!(choose("ns", "a", &BTreeSet::new(), others), Some((second, vec![second])));
    }

    #[test]
    fn if_nothing_is_usable_the_first_free_one_is_taken() {
        let first = choose("ns", "a", &BTreeSet::new(), |_| Some(()));
        assert_eq!(choose("ns", "a", &BTreeSet::new(), |_| None), first);
    }

    proptest! {
        #[test]
        fn every_address_is_in_range(number: u32) {
            let [net, second, _, last] = spread(number).octets();
            prop_assert!(net == 127 && second >= 128 && (1..=254).contains(&last));
        }
    }
}
