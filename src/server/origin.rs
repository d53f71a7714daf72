//! Where a request comes from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a request comes from; what it may do depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The socket for commands, which only those can open who may do everything.
    Commands {
        /// Who asks, as the kernel says.
        user: String,
    },
    /// The socket for hooks, which any user of this machine can open.
    Hooks {
        /// Who asks, as the kernel says.
        user: String,
    },
    /// The socket for deployers, which their pods alone see.
    Deployers {
        /// Who asks, as the kernel says.
        user: String,
    },
    /// TCP, where anybody may be on the other side.
    Network {
        /// The other side's address; a proxy's where there is one.
        client: SocketAddr,
    },
}

/// What clients share is shared so that one that is alone gets one of so many parts.
pub(super) const PARTS: usize = 5;

/// Who is behind requests, as far as anybody can tell before reading them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// An address; a whole network of IPv6's, of which everybody has one.
    Address(IpAddr),
    /// A user of this machine.
    User(String),
}

impl Origin {
    /// Who is behind it.
    pub fn client(&self) -> Client {
        match self {
            Self::Commands { user } | Self::Hooks { user } | Self::Deployers { user } => Client::User(user.clone()),
            Self::Network { client } => Client::Address(match client.ip().to_canonical() {
                IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
                address => address,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_host_can_choose_from_are_one_client() {
        let client = |address: &str| Origin::Network { client: address.parse().expect("an address") }.client();
        assert_eq!(client("192.0.2.7:1"), client("192.0.2.7:2"));
        assert_eq!(client("192.0.2.7:1"), client("[::ffff:192.0.2.7]:2"));
        assert_ne!(client("192.0.2.7:1"), client("192.0.2.8:1"));
        assert_eq!(client("[2001:db8::1]:1"), client("[2001:db8::f00:2]:1"));
        assert_ne!(client("[2001:db8::1]:1"), client("[2001:db8:0:1::1]:1"));
    }
}
