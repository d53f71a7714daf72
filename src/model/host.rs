//! Hosts as addresses name them.

use std::net::IpAddr;

/// Whether a host, perhaps with its port, is this machine: `localhost` or an address of loopback, that of IPv6 in brackets or
/// without a port.
pub fn is_loopback(host: &str) -> bool {
    let is_whole = |name: &str| !name.contains(':') || name.ends_with(']');
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_whole(name) && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_addresses_with_any_port() {
        for (host, expected) in [
            ("localhost", true),
            ("localhost:5000", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("127.8.9.10:80", true),
            ("[::1]", true),
            ("[::1]:443", true),
            ("::1", true),
            ("::2", false),
            ("2001:db8::1", false),
            ("localhost.example", false),
            ("127.0.0.1.example:80", false),
            ("10.0.0.1", false),
            ("[2001:db8::1]:1", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
