//! The registry that most others are made from, as a process: `docker-registry`, a package of Debian's.
//!
//! `cargo test --test registry -- --ignored real`; `REGISTRY=/path/to/registry` runs another one of its programs.

mod image;
mod planned;
mod server;
mod tokens;

use launchway::registry::http::{HttpRegistry, RegistrySettings};
use launchway::registry::{ImageName, Registry as _};

use self::image::{Client, Image};
use self::server::{Access, PASSWORD, Real, USER};
use self::tokens::Tokens;

/// What `acme/web` is asked for there.
fn tag(real: &Real, tag: &str) -> ImageName {
    ImageName::parse(&format!("{}/acme/web:{tag}", real.address)).unwrap()
}

/// Asks as somebody who knows this password.
fn opened_by(real: &Real, password: &str) -> HttpRegistry {
    let host = real.address.clone();
    HttpRegistry::new(vec![RegistrySettings {
        host,
        username: crate::value(USER),
        password: crate::value(password),
        ..RegistrySettings::default()
    }])
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn a_real_registry_says_what_a_tag_leads_to() {
    let real = Real::start(&Access::Anybody).await;
    let (client, registry) = (Client::new(&real, None), HttpRegistry::default());
    let nothing = registry.look_up(&tag(&real, "prod"), None).await.unwrap_err().one_line();
    assert!(nothing.contains("has no image"), "{nothing}");

    let first = client.push(&Image::of("one"), "prod").await;
    let found = registry.look_up(&tag(&real, "prod"), None).await.unwrap();
    assert_eq!((&found.digest, found.etag.is_some()), (&first, true));
    assert_eq!(registry.look_up(&tag(&real, "prod"), Some(&found)).await.unwrap(), found);
    real.has_answered("HEAD 304").await;

    let second = client.push(&Image::of("two"), "prod").await;
    assert_ne!(first, second);
    assert_eq!(registry.look_up(&tag(&real, "prod"), Some(&found)).await.unwrap().digest, second);
    let missing = registry.look_up(&tag(&real, "nightly"), Some(&found)).await.unwrap_err().one_line();
    assert!(missing.contains("has no image `127.0.0.1"), "{missing}");
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn a_real_registry_has_images_of_both_formats_and_of_several_platforms() {
    let real = Real::start(&Access::Anybody).await;
    let client = Client::new(&real, None);
    for (image, name) in [
        (Image::of("oci"), "oci"),
        (Image::of("docker").for_docker(), "docker"),
        (Image::of("several").for_platforms(&["amd64", "arm64"]), "several"),
        (Image::of("several-of-docker").for_docker().for_platforms(&["amd64", "arm64"]), "several-of-docker"),
    ] {
        let pushed = client.push(&image, name).await;
        let found = HttpRegistry::default().look_up(&tag(&real, name), None).await.unwrap();
        assert_eq!(found.digest, pushed, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn a_real_registry_opens_to_whom_it_should() {
    let tokens = Tokens::start().await;
    for access in [Access::Password, Access::Token(&tokens)] {
        let real = Real::start(&access).await;
        let allowed = match &access {
            Access::Token(tokens) => format!("Bearer {}", tokens.give("acme/web", &["pull", "push"])),
            _ => server::basic(),
        };
        let pushed = Client::new(&real, Some(allowed)).push(&Image::of("one"), "prod").await;
        let prod = tag(&real, "prod");
        let found = opened_by(&real, PASSWORD).look_up(&prod, None).await.unwrap();
        assert_eq!(found.digest, pushed, "{access:?}");
        assert_eq!(opened_by(&real, PASSWORD).look_up(&prod, Some(&found)).await.unwrap(), found);

        for (registry, expected) in [
            (HttpRegistry::default(), ["wants a user name and a password", "does not give `acme/web` out"]),
            (opened_by(&real, "guessed"), ["does not give `acme/web` out"; 2]),
        ] {
            let told = registry.look_up(&prod, Some(&found)).await.unwrap_err().one_line();
            let expected = expected[usize::from(matches!(access, Access::Token(_)))];
            assert!(told.contains(expected) && !told.contains("guessed"), "{access:?}: {told}");
        }
    }
}
