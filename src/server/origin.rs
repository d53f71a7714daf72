//! Where a request comes from.

use std::net::SocketAddr;

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
    /// TCP, where anybody may be on the other side.
    Network {
        /// The other side's address; a proxy's where there is one.
        client: SocketAddr,
    },
}
