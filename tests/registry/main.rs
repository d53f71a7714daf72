//! Asking registries of OCI images, over real HTTP: a double with the manners of the well-known ones, and a real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, both are how it fails")]

#[path = "../support"]
mod support {
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod git;
}

mod double;
mod imports;
mod real;

use launchway::registry::http::{HttpRegistry, RegistrySettings};
use launchway::registry::{ImageName, Known, Registry as _};
use launchway::secret::{Secret, SecretSource};

use double::{DIGEST, Double, Manners, OTHER};

fn value(text: &str) -> Option<SecretSource> {
    Some(SecretSource::Value(Secret::new(text)))
}

/// Asks with a user name and a password, or without.
async fn ask(double: &Double, password: Option<&str>, known: Option<&Known>) -> Result<Known, String> {
    let host = double.address.to_string();
    let opened = RegistrySettings { host: host.clone(), username: value("ci"), ..RegistrySettings::default() };
    let known_hosts = password.map(|password| RegistrySettings { password: value(password), ..opened });
    let registry = HttpRegistry::new(known_hosts.into_iter().collect());
    let image = ImageName::parse(&format!("{host}/acme/web:prod")).unwrap();
    registry.look_up(&image, known).await.map_err(|failure| failure.one_line())
}

#[tokio::test]
async fn a_tag_leads_to_its_digest_whatever_the_registry_wants_to_hear_first() {
    for (manners, password, expected) in [
        (Manners::default(), None, Ok(DIGEST)),
        (Manners { silent: true, ..Manners::default() }, None, Ok(DIGEST)),
        (Manners { basic: true, ..Manners::default() }, Some("hunter2"), Ok(DIGEST)),
        (Manners { bearer: true, ..Manners::default() }, Some("hunter2"), Ok(DIGEST)),
        (Manners { redirects: 3, ..Manners::default() }, None, Ok(DIGEST)),
        (Manners { redirects: 30, ..Manners::default() }, None, Err("redirects endlessly")),
        (Manners { basic: true, ..Manners::default() }, None, Err("wants a user name and a password")),
        (Manners { basic: true, ..Manners::default() }, Some("wrong"), Err("does not give")),
        (Manners { bearer: true, ..Manners::default() }, Some("wrong"), Err("does not give")),
        (Manners { status: Some(404), ..Manners::default() }, None, Err("has no image")),
        (Manners { status: Some(429), ..Manners::default() }, None, Err("429")),
        (Manners { status: Some(500), ..Manners::default() }, None, Err("500")),
        (Manners { endless: true, silent: true, ..Manners::default() }, None, Err("too long")),
    ] {
        let double = Double::start(manners.clone()).await;
        let found = ask(&double, password, None).await;
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.digest, expected, "{manners:?}"),
            (Err(told), Err(expected)) => {
                assert!(told.contains(expected), "{manners:?}: {told}");
                assert!(!told.contains("hunter2") && !told.contains("wrong"), "{told}");
            }
            (found, _) => assert_eq!(found, Err(String::new()), "{manners:?}"),
        }
    }
}

#[tokio::test]
async fn nothing_new_is_told_by_a_word_alone() {
    let double = Double::start(Manners::default()).await;
    let first = ask(&double, None, None).await.unwrap();
    assert!(first.etag.is_some());
    assert_eq!(ask(&double, None, Some(&first)).await.unwrap(), first);
    assert_eq!(double.seen(), ["HEAD 200", "HEAD 304"]);
    double.set(Manners { digest: OTHER, ..Manners::default() });
    assert_eq!(ask(&double, None, Some(&first)).await.unwrap().digest, OTHER);
}

#[tokio::test]
async fn what_opens_a_registry_goes_nowhere_else() {
    let other = Double::start(Manners::default()).await;
    let elsewhere = format!("http://{}", other.address);
    let double = Double::start(Manners { basic: true, elsewhere: Some(elsewhere), ..Manners::default() }).await;
    let told = ask(&double, Some("hunter2"), None).await.unwrap_err();
    assert!(told.contains("redirects to an unencrypted address"), "{told}");
    assert_eq!(other.seen(), [""; 0]);
}
