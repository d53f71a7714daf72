//! What launchway identifies itself with. Files are read at each use, so that a changed one counts at once.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;

use crate::error::{Context as _, Failure, Result};
use crate::secret::{Secret, SecretSource};

/// A bundle of all public authorities is about 250 KiB.
const MAX_CA_BYTES: u64 = 4 << 20;

/// Variables that hold secrets: read once, and not handed on to other programs.
const TOKEN: &str = "LAUNCHWAY_GIT_TOKEN";
const USERNAME: &str = "LAUNCHWAY_GIT_USERNAME";
const PASSWORD: &str = "LAUNCHWAY_GIT_PASSWORD";
pub(super) const SECRET_VARIABLES: [&str; 3] = [TOKEN, USERNAME, PASSWORD];

/// All that one repository may need. Everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// An access token, sent as the password over HTTP.
    pub token: Option<SecretSource>,
    /// The user name over HTTP; without one, what the host expects beside a token.
    pub username: Option<SecretSource>,
    /// The password over HTTP, when there is no token.
    pub password: Option<SecretSource>,
    /// The private key for SSH; without one, those of the user and the agent.
    pub ssh_key_file: Option<PathBuf>,
    /// The host keys to accept over SSH; without it, the user's own.
    pub known_hosts_file: Option<PathBuf>,
    /// Certificate authorities (PEM) to trust beside the machine's.
    pub ca_file: Option<PathBuf>,
}

impl Credentials {
    /// Credentials from `LAUNCHWAY_GIT_TOKEN`, `LAUNCHWAY_GIT_USERNAME` and `LAUNCHWAY_GIT_PASSWORD`.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(|value| SecretSource::Value(Secret::new(value)))
        };
        Self { token: value(TOKEN), username: value(USERNAME), password: value(PASSWORD), ..Self::default() }
    }

    /// Whether anything would be sent over HTTP.
    pub(super) fn has_http(&self) -> bool {
        self.token.is_some() || self.password.is_some()
    }

    /// The `Authorization` header for `host`; `user` is the name in the address. Basic is what every forge takes for
    /// Git, with tokens as passwords.
    pub(super) fn authorization(&self, host: &str, user: Option<&str>) -> Result<Option<Secret>> {
        let Some(password) = self.token.as_ref().or(self.password.as_ref()) else { return Ok(None) };
        let password = password.read()?;
        let name = match (&self.username, user) {
            (Some(source), _) => source.read()?.reveal().to_owned(),
            (None, Some(user)) => user.to_owned(),
            (None, None) => token_user(host).to_owned(),
        };
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{}", password.reveal()));
        Ok(Some(Secret::new(format!("Basic {pair}"))))
    }

    /// The content of the CA file.
    pub(super) fn ca_bundle(&self) -> Result<Option<Vec<u8>>> {
        self.ca_file.as_deref().map(read_ca_bundle).transpose()
    }
}

/// The user name beside a token: Bitbucket Cloud wants its own word, all others take any.
fn token_user(host: &str) -> &'static str {
    if host == "bitbucket.org" { "x-token-auth" } else { "x-access-token" }
}

fn read_ca_bundle(path: &Path) -> Result<Vec<u8>> {
    let describe = || format!("cannot read the certificates in `{}`", path.display());
    let file = File::open(path).or_stalled(describe)?;
    let mut bytes = Vec::new();
    let length = file.take(MAX_CA_BYTES + 1).read_to_end(&mut bytes).or_stalled(describe)?;
    if length as u64 > MAX_CA_BYTES {
        let message = format!("the certificates in `{}` are larger than {MAX_CA_BYTES} bytes", path.display());
        return Err(Failure::stalled(message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(credentials: &Credentials, host: &str, user: Option<&str>) -> String {
        let header = credentials.authorization(host, user).expect("readable").expect("a header");
        let encoded = header.reveal().strip_prefix("Basic ").expect("Basic").to_owned();
        String::from_utf8(base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64")).expect("text")
    }

    #[test]
    fn a_secret_is_never_shown() {
        let credentials =
            Credentials { token: Some(SecretSource::Value(Secret::new("hunter2"))), ..Credentials::default() };
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }

    #[test]
    fn a_token_is_sent_as_password_with_the_name_that_the_host_wants() {
        let mut credentials = Credentials::from_environment(|name| (name == "LAUNCHWAY_GIT_TOKEN").then(|| "t".into()));
        assert_eq!(header(&credentials, "git.example", None), "x-access-token:t");
        assert_eq!(header(&credentials, "bitbucket.org", None), "x-token-auth:t");
        assert_eq!(header(&credentials, "git.example", Some("bot")), "bot:t");
        credentials.username = Some(SecretSource::Value(Secret::new("ci")));
        assert_eq!(header(&credentials, "git.example", Some("bot")), "ci:t");
    }
}
