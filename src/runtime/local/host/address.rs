//! Addresses and ports of pods: derived from the pod, so that they rarely collide, and checked, so that they never do.
//! The number that they, and the addresses of services, follow from.

use std::net::{Ipv4Addr, TcpListener};

/// The ports that are given to pods: below those that Linux uses for outgoing connections (32768 and up).
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// 127.64.0.0 to 127.127.255.255 is for pods; services have the addresses above.
const PODS: u32 = 0x7f40_0000;
/// How many addresses that is.
const ADDRESSES: u32 = 1 << 22;

/// A number that is the same for the same text wherever and whenever it is computed (FNV-1a): the standard library's
/// hasher promises no such thing.
pub(crate) fn number_of(text: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, mix)
}

/// An address that no other pod has; `None` if all are taken.
pub(crate) fn choose_address(seed: u32, is_taken: impl Fn(Ipv4Addr) -> bool) -> Option<Ipv4Addr> {
    let candidates = (0..ADDRESSES).map(|step| Ipv4Addr::from(PODS + seed.wrapping_add(step) % ADDRESSES));
    // Addresses that end in 0 or 255 look like networks and broadcasts to some programs.
    candidates.filter(|address| !matches!(address.octets(), [.., 0 | 255])).find(|address| !is_taken(*address))
}

/// A port that no other pod has and on which nothing listens; `None` if there is none.
pub(crate) fn choose_port(seed: u32, is_taken: impl Fn(u16) -> bool) -> Option<u16> {
    let size = u32::from(PORTS.end - PORTS.start);
    let candidates = (0..size).filter_map(|step| u16::try_from(seed.wrapping_add(step) % size).ok());
    candidates.map(|offset| PORTS.start + offset).filter(|port| !is_taken(*port)).find(|port| is_free(*port))
}

/// Whether nothing listens on a port.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn addresses_differ_and_stay_in_their_range() {
        let mut taken = BTreeSet::new();
        for _ in 0..600 {
            let address = choose_address(u32::MAX - 3, |address| taken.contains(&address)).unwrap();
            assert_eq!(address.octets()[0], 127);
            assert!((64..128).contains(&address.octets()[1]));
            assert!(taken.insert(address));
        }
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let first = choose_port(7, |_| false).unwrap();
        let _listener = TcpListener::bind(("127.0.0.1", first)).unwrap();
        let second = choose_port(7, |port| port == first + 1).unwrap();
        assert!(second > first + 1 && PORTS.contains(&second));
    }
}
