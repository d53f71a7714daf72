//! The host of a repository: which it is, and what opens it.

use std::path::Path;

use super::fields::Field;
use super::files::Holds;
use super::parse::{address, http_address, name, unique};
use super::{CredentialFiles, ForgeKind, ForgeSettings, RepositorySettings};
use crate::forge::github::app::AppSettings;
use crate::model::ids::RepositoryName;

/// The repositories of code whose commits get the statuses of what deploys them too.
pub(super) fn code(field: &Field<'_>, folder: &Path) -> Vec<RepositorySettings> {
    let items = field.items().into_iter().map(|field| {
        field.known(&["name", "url", "forge", "credentials", "insecure"]);
        let own =
            RepositorySettings::new(RepositoryName::new(name(&field.field("name"))), address(&field.field("url")));
        let settings = RepositorySettings {
            forge: forge(&field.field("forge"), folder),
            credentials: credentials(&field.field("credentials"), folder),
            insecure: field.field("insecure").flag().unwrap_or(false),
            ..own
        };
        refuse_token_beside_app(&field.field("credentials"), &settings);
        if settings.host() == ForgeKind::None {
            let hint = "name one that does: `forge: {kind: gitea}`, `github`, `gitlab`, …";
            field.field("url").error("invalid", "no host is known there that takes statuses", hint);
        } else if settings.credentials.token.is_none() && settings.app().is_none() {
            field.error("missing", "statuses on a host need a token", "give `credentials: {tokenFile: …}`");
        }
        settings
    });
    unique(field, items.collect(), |repository| repository.name.as_str())
}

pub(super) fn credentials(field: &Field<'_>, folder: &Path) -> CredentialFiles {
    field.known(&["tokenFile", "usernameFile", "passwordFile", "sshKeyFile", "knownHostsFile", "caFile"]);
    let file = |key, holds| field.field(key).file(folder, holds);
    let files = CredentialFiles {
        token: file("tokenFile", Holds::Secret),
        username: file("usernameFile", Holds::Public),
        password: file("passwordFile", Holds::Secret),
        ssh_key: file("sshKeyFile", Holds::Key),
        known_hosts: file("knownHostsFile", Holds::Public),
        ca: file("caFile", Holds::Public),
    };
    refuse_both(field, files.token.is_some() && files.password.is_some());
    files
}

pub(super) fn refuse_both(field: &Field<'_>, are_both: bool) {
    if are_both {
        field.field("passwordFile").error("conflict", "a token and a password exclude each other", "leave one out");
    }
}

pub(super) fn forge(field: &Field<'_>, folder: &Path) -> Option<ForgeSettings> {
    field.known(&["kind", "url", "app"]);
    let kind = field.field("kind");
    if !field.is_given() || !kind.required() {
        return None;
    }
    let kind = kind.word(&[
        ("gitea", ForgeKind::Gitea),
        ("forgejo", ForgeKind::Gitea),
        ("gogs", ForgeKind::Gitea),
        ("github", ForgeKind::Github),
        ("gitlab", ForgeKind::Gitlab),
        ("bitbucket", ForgeKind::Bitbucket),
        ("bitbucket-data-center", ForgeKind::BitbucketDataCenter),
        ("azure", ForgeKind::Azure),
        ("none", ForgeKind::None),
    ])?;
    let app = app(&field.field("app"), folder);
    if app.is_some() && kind != ForgeKind::Github {
        field.field("app").error(
            "invalid",
            "only GitHub has Apps",
            "give `credentials: {tokenFile: …}`, or `kind: github`",
        );
    }
    Some(ForgeSettings { kind, url: http_address(&field.field("url")), app })
}

/// A GitHub App; nothing, if it is none.
fn app(field: &Field<'_>, folder: &Path) -> Option<AppSettings> {
    field.known(&["id", "keyFile"]);
    if !field.is_given() {
        return None;
    }
    let (id, key_file) = (field.field("id"), field.field("keyFile"));
    let are_given = [id.required(), key_file.required()];
    let (id, key_file) = (id.count(), key_file.file(folder, Holds::Key));
    are_given.iter().all(|given| *given).then_some(())?;
    Some(AppSettings { id: id?, key_file: key_file? })
}

/// A token and an App would be two answers to the same question.
pub(super) fn refuse_token_beside_app(field: &Field<'_>, settings: &RepositorySettings) {
    if settings.app().is_some() && settings.credentials.token.is_some() {
        let message = "a token and a GitHub App exclude each other";
        field.field("tokenFile").error("conflict", message, "leave one out: the App opens Git over HTTPS too");
    }
}
