//! Hosts as requests name them: compared as hosts are, not as text.

use std::net::IpAddr;

use axum::http::uri::Authority;

/// A host of `Host` or `Origin`, or of a configured address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// In lower case, without a dot at the end and without brackets.
    name: String,
    port: Option<u16>,
}

/// An address that a person types into a browser: its scheme's port counts where it names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicAddress {
    host: Host,
    scheme_port: u16,
}

impl Host {
    /// Reads what a `Host` header says.
    pub fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok().filter(|_| !text.contains('@'))?;
        let name = authority.host().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        // A port that is no number is no port.
        let port = authority.port_u16();
        let is_whole = port.is_some() || text.len() == authority.host().len();
        (is_whole && !name.is_empty()).then_some(Self { name, port })
    }

    /// Whether it is this machine: `localhost` or an address of loopback, with any port.
    pub fn is_loopback(&self) -> bool {
        let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
        self.name == "localhost" || self.name.parse().is_ok_and(is_loopback)
    }
}

impl PublicAddress {
    /// Reads an address such as `https://deploy.example/launchway`, or what an `Origin` header says.
    pub fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme_port = match scheme.to_ascii_lowercase().as_str() {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        Some(Self { host: Host::parse(rest.split('/').next()?)?, scheme_port })
    }

    /// The host that it names.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Whether a request to this address names `host`. Whoever names no port means the scheme's.
    pub fn is_at(&self, host: &Host) -> bool {
        let port = |host: &Host| host.port.unwrap_or(self.scheme_port);
        self.host.name == host.name && port(&self.host) == port(host)
    }

    /// Whether pages of both addresses are of one site.
    pub fn is_same_site(&self, other: &Self) -> bool {
        self.scheme_port == other.scheme_port && self.is_at(&other.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_by_name_and_port() {
        for (url, host, same) in [
            ("https://deploy.example", "deploy.example", true),
            ("https://Deploy.Example/launchway", "deploy.EXAMPLE.", true),
            ("https://deploy.example", "deploy.example:443", true),
            ("https://deploy.example:443", "deploy.example", true),
            ("HTTP://deploy.example", "deploy.example:80", true),
            ("https://deploy.example:8443", "deploy.example:8443", true),
            ("https://[2001:db8::1]:8443", "[2001:DB8::1]:8443", true),
            ("https://deploy.example", "deploy.example:80", false),
            ("https://deploy.example:8443", "deploy.example", false),
            ("https://deploy.example", "deploy.example.evil", false),
            ("https://deploy.example", "evil.example", false),
        ] {
            let (url, host) = (PublicAddress::parse(url).expect("an address"), Host::parse(host).expect("a host"));
            assert_eq!(url.is_at(&host), same, "{url:?} {host:?}");
        }
    }

    #[test]
    fn what_is_no_host_is_none() {
        for text in ["", ":80", "a@b", "a b", "a/b", "a:port", "a:99999", "a:"] {
            assert_eq!(Host::parse(text), None, "{text}");
        }
        for text in ["null", "deploy.example", "ftp://deploy.example", "https://"] {
            assert_eq!(PublicAddress::parse(text), None, "{text}");
        }
    }

    #[test]
    fn this_machine_has_many_names() {
        for (text, ours) in [
            ("localhost:8787", true),
            ("LOCALHOST", true),
            ("127.0.0.1:8787", true),
            ("127.9.9.9", true),
            ("[::1]:8787", true),
            ("[::ffff:127.0.0.1]", true),
            ("localhost.evil.example", false),
            ("10.0.0.1", false),
            ("[2001:db8::1]", false),
        ] {
            assert_eq!(Host::parse(text).expect("a host").is_loopback(), ours, "{text}");
        }
    }
}
