//! Which host a repository lives on, and where that host's API is.

use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Failure, Result};

/// Hosts that anybody can tell by their name.
const KNOWN: [(&str, ForgeKind); 7] = [
    ("github.com", ForgeKind::Github),
    ("gitlab.com", ForgeKind::Gitlab),
    ("bitbucket.org", ForgeKind::Bitbucket),
    ("dev.azure.com", ForgeKind::Azure),
    ("ssh.dev.azure.com", ForgeKind::Azure),
    ("gitea.com", ForgeKind::Gitea),
    ("codeberg.org", ForgeKind::Gitea),
];

/// What a repository is hosted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForgeKind {
    /// Gitea or Forgejo: webhooks and commit statuses.
    Gitea,
    /// GitHub: webhooks and commit statuses.
    Github,
    /// GitLab: webhooks and commit statuses.
    Gitlab,
    /// Bitbucket Cloud: webhooks and commit statuses.
    Bitbucket,
    /// Bitbucket Data Center: webhooks and commit statuses.
    #[serde(rename = "bitbucket-data-center")]
    BitbucketDataCenter,
    /// Azure DevOps: webhooks and commit statuses.
    Azure,
    /// Plain Git: signed calls of one's own, and Git notes.
    #[default]
    None,
}

impl ForgeKind {
    /// The kind of host that `repository_url` tells by itself. Only public hosts go by their names: a wrong guess
    /// would send a token to an API of another kind.
    pub fn guess(repository_url: &str) -> Self {
        host(repository_url)
            .and_then(|host| KNOWN.iter().find(|(known, _)| host.eq_ignore_ascii_case(known)))
            .map_or(ForgeKind::None, |(_, kind)| *kind)
    }
}

/// A repository as a forge's API names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryAddress {
    /// The forge's own address, without user, password, query and a slash at the end of its path.
    pub base: Url,
    /// The user or organisation.
    pub owner: String,
    /// The repository.
    pub name: String,
}

impl RepositoryAddress {
    /// Takes a repository's address apart. `forge_url` is the forge's own, where the configuration names it; it is needed
    /// for `ssh` addresses, whose host says nothing about the API. `Stalled` if owner, name or forge cannot be told.
    pub fn new(repository_url: &str, forge_url: Option<&str>) -> Result<Self> {
        let mut path = path_segments(repository_url)?;
        let name = path.pop().filter(|name| is_name(name));
        let owner = path.pop().filter(|owner| is_name(owner));
        let (Some(owner), Some(name)) = (owner, name) else {
            return Err(Failure::stalled("the repository's address does not end in `<owner>/<name>`")
                .hint("commit statuses need them; set `forge: {kind: none}` for plain Git"));
        };
        let base = match forge_url {
            Some(url) => Url::parse(url).or_stalled(|| "`forge.url` is not an address".to_owned())?,
            None => guess_base(repository_url, &path)?,
        };
        Ok(Self { base: without_credentials(base)?, owner, name })
    }

    /// The same of a host whose projects stand in groups of groups: what is before the name is the owner, as far as it is
    /// not a part of the forge's own address. `Stalled` as with [`RepositoryAddress::new`].
    fn in_groups(repository_url: &str, forge_url: Option<&str>) -> Result<Self> {
        let plain = Self::new(repository_url, forge_url)?;
        let path = path_segments(repository_url)?;
        let base = match forge_url {
            Some(_) => plain.base,
            None => {
                let mut base = plain.base;
                base.set_path("");
                base
            }
        };
        let own: Vec<String> = base.path().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let groups = path.strip_prefix(own.as_slice()).unwrap_or(&path);
        let owner = groups[..groups.len().saturating_sub(1)].join("/");
        Ok(Self { base, owner, ..plain })
    }

    /// The same on a host of this kind, whose addresses may be of another form.
    ///
    /// # Errors
    /// `Stalled` as with [`RepositoryAddress::new`].
    pub fn on(kind: ForgeKind, repository_url: &str, forge_url: Option<&str>) -> Result<Self> {
        match kind {
            ForgeKind::Gitlab => Self::in_groups(repository_url, forge_url),
            ForgeKind::BitbucketDataCenter => Self::below_scm(repository_url, forge_url),
            ForgeKind::Azure => Self::on_azure(repository_url),
            ForgeKind::Gitea | ForgeKind::Github | ForgeKind::Bitbucket | ForgeKind::None => {
                Self::new(repository_url, forge_url)
            }
        }
    }

    /// Bitbucket Data Center has its repositories below `/scm` where Git reaches them over HTTP, and its API elsewhere.
    fn below_scm(repository_url: &str, forge_url: Option<&str>) -> Result<Self> {
        let mut address = Self::new(repository_url, forge_url)?;
        if let Some(path) = address.base.path().strip_suffix("/scm").map(str::to_owned) {
            address.base.set_path(&path);
        }
        Ok(address)
    }

    /// Azure DevOps names organization, project and repository: `https://dev.azure.com/ORG/PROJECT/_git/REPO`,
    /// `git@ssh.dev.azure.com:v3/ORG/PROJECT/REPO`, or with the organization in the host's name.
    fn on_azure(repository_url: &str) -> Result<Self> {
        let unusual = || {
            Failure::stalled("the repository's address is not one of Azure DevOps")
                .hint("such as https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY")
        };
        let mut path = path_segments(repository_url)?;
        path.retain(|part| part != "_git" && part != "v3");
        let host = host(repository_url).ok_or_else(unusual)?.to_ascii_lowercase();
        let by_name = host.strip_suffix(".visualstudio.com").filter(|organization| *organization != "vs-ssh");
        if let Some(organization) = by_name {
            path.insert(0, organization.to_owned());
            path.retain(|part| part != "DefaultCollection");
        }
        // Where the project is left out, it has the repository's name.
        let [organization, rest @ ..] = path.as_slice() else { return Err(unusual()) };
        let (owner, name) = match rest {
            [name] => (name, name),
            [project, name] => (project, name),
            _ => return Err(unusual()),
        };
        if ![organization, owner, name].iter().all(|part| is_name(part)) {
            return Err(unusual());
        }
        let mut base = Url::parse("https://dev.azure.com").or_stalled(|| "no address".to_owned())?;
        let url = Url::parse(repository_url).ok().filter(|url| url.scheme().starts_with("http"));
        if let Some(url) = url.filter(|_| by_name.is_none() && host != "dev.azure.com") {
            base = without_credentials(url)?;
        }
        base.set_path(organization);
        Ok(Self { base, owner: owner.clone(), name: name.clone() })
    }

    /// The address of a part of the API: `segments` below the forge's own address, each encoded.
    pub fn api<'a>(&self, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }
}

/// The forge's address, from a repository's address over HTTP, or of a public host.
fn guess_base(repository_url: &str, path_before_owner: &[String]) -> Result<Url> {
    let url = Url::parse(repository_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if let Some(mut url) = url {
        url.set_path(&path_before_owner.join("/"));
        return Ok(url);
    }
    if ForgeKind::guess(repository_url) != ForgeKind::None
        && let Some(host) = host(repository_url)
    {
        return Url::parse(&format!("https://{host}")).or_stalled(|| format!("`{host}` is not a host"));
    }
    Err(Failure::stalled("the forge's address cannot be told from the repository's")
        .hint("set `forge.url` to the address of its web pages"))
}

fn without_credentials(mut url: Url) -> Result<Url> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Failure::stalled("`forge.url` must start with https:// or http://"));
    }
    url.set_query(None);
    url.set_fragment(None);
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    cleared.map_err(|()| Failure::stalled("`forge.url` has no host"))?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// The parts of the path, without `.git` at the end.
fn path_segments(repository_url: &str) -> Result<Vec<String>> {
    let path = match Url::parse(repository_url) {
        Ok(url) => url.path().to_owned(),
        Err(_) => scp(repository_url).map(|(_, path)| path.to_owned()).unwrap_or_default(),
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    Ok(path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

fn host(repository_url: &str) -> Option<String> {
    match Url::parse(repository_url) {
        Ok(url) if matches!(url.scheme(), "http" | "https" | "ssh" | "git") => url.host_str().map(str::to_owned),
        Ok(_) => None,
        Err(_) => scp(repository_url).map(|(host, _)| host.to_owned()),
    }
}

/// Git's short form of an `ssh` address, `[user@]host:path`.
fn scp(address: &str) -> Option<(&str, &str)> {
    let (host, path) = address.split_once(':')?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (!host.is_empty() && !host.contains('/') && !path.starts_with("//")).then_some((host, path))
}

fn is_name(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_hosts_are_told_by_their_names() {
        let cases = [
            ("https://github.com/acme/shop.git", ForgeKind::Github),
            ("https://token@GitHub.com/acme/shop", ForgeKind::Github),
            ("git@github.com:acme/shop.git", ForgeKind::Github),
            ("ssh://git@github.com:22/acme/shop.git", ForgeKind::Github),
            ("https://codeberg.org/acme/shop", ForgeKind::Gitea),
            ("https://github.com.evil.example/acme/shop", ForgeKind::None),
            ("https://gitea.example/acme/shop", ForgeKind::None),
            ("https://evil.example/github.com/shop", ForgeKind::None),
            ("file:///srv/github.com/shop.git", ForgeKind::None),
            ("/srv/git/shop.git", ForgeKind::None),
            ("./a:b", ForgeKind::None),
            ("", ForgeKind::None),
        ];
        for (url, expected) in cases {
            assert_eq!(ForgeKind::guess(url), expected, "{url}");
        }
    }

    #[test]
    fn addresses_are_taken_apart() {
        let cases = [
            ("https://git.example/acme/shop.git", None, "https://git.example/ acme shop"),
            ("https://git.example:8443/gitea/acme/shop/", None, "https://git.example:8443/gitea acme shop"),
            ("https://me:secret@git.example/acme/shop.git?x=1#y", None, "https://git.example/ acme shop"),
            ("git@codeberg.org:acme/shop.git", None, "https://codeberg.org/ acme shop"),
            (
                "ssh://git@git.example:2222/acme/shop.git",
                Some("https://git.example/"),
                "https://git.example/ acme shop",
            ),
            ("git@git.example:acme/shop.git", Some("http://[::1]:3000/g/"), "http://[::1]:3000/g acme shop"),
        ];
        for (repository, forge, expected) in cases {
            let address = RepositoryAddress::new(repository, forge).unwrap();
            assert_eq!(format!("{} {} {}", address.base, address.owner, address.name), expected);
        }
    }

    #[test]
    fn groups_belong_to_the_project() {
        let cases = [
            ("https://gitlab.com/acme/shop.git", None, "https://gitlab.com/ acme shop"),
            ("https://gitlab.com/acme/web/front/shop.git", None, "https://gitlab.com/ acme/web/front shop"),
            ("git@gitlab.com:acme/web/shop.git", None, "https://gitlab.com/ acme/web shop"),
            (
                "https://git.example/gitlab/acme/web/shop",
                Some("https://git.example/gitlab/"),
                "https://git.example/gitlab acme/web shop",
            ),
        ];
        for (repository, forge, expected) in cases {
            let address = RepositoryAddress::on(ForgeKind::Gitlab, repository, forge).unwrap();
            assert_eq!(format!("{} {} {}", address.base, address.owner, address.name), expected);
        }
        let address = RepositoryAddress::on(ForgeKind::Gitlab, "https://gitlab.com/acme/web/shop.git", None).unwrap();
        let project = format!("{}/{}", address.owner, address.name);
        assert_eq!(
            address.api(["api", "v4", "projects", &project]).as_str(),
            "https://gitlab.com/api/v4/projects/acme%2Fweb%2Fshop"
        );
    }

    #[test]
    fn hosts_with_addresses_of_their_own_are_taken_apart() {
        use ForgeKind::{Azure, BitbucketDataCenter};
        let cases = [
            (BitbucketDataCenter, "https://git.example/scm/ACME/shop.git", None, "https://git.example/ ACME shop"),
            (BitbucketDataCenter, "https://git.example/bb/scm/~ann/shop.git", None, "https://git.example/bb ~ann shop"),
            (
                BitbucketDataCenter,
                "ssh://git@git.example:7999/ACME/shop.git",
                Some("https://git.example/bb"),
                "https://git.example/bb ACME shop",
            ),
            (Azure, "https://dev.azure.com/acme/web/_git/shop", None, "https://dev.azure.com/acme web shop"),
            (Azure, "https://ann@dev.azure.com/acme/web/_git/shop", None, "https://dev.azure.com/acme web shop"),
            (Azure, "https://dev.azure.com/acme/_git/shop", None, "https://dev.azure.com/acme shop shop"),
            (Azure, "git@ssh.dev.azure.com:v3/acme/web/shop", None, "https://dev.azure.com/acme web shop"),
            (
                Azure,
                "https://acme.visualstudio.com/DefaultCollection/web/_git/shop",
                None,
                "https://dev.azure.com/acme web shop",
            ),
            (Azure, "http://127.0.0.1:7/acme/web/_git/shop", None, "http://127.0.0.1:7/acme web shop"),
        ];
        for (kind, repository, forge, expected) in cases {
            let address = RepositoryAddress::on(kind, repository, forge).unwrap();
            assert_eq!(format!("{} {} {}", address.base, address.owner, address.name), expected);
        }
        for url in ["https://dev.azure.com/acme", "https://dev.azure.com/a/b/c/_git/d", "file:///srv/a/b/c"] {
            assert!(RepositoryAddress::on(Azure, url, None).is_err(), "{url}");
        }
    }

    #[test]
    fn an_address_that_does_not_say_enough_is_refused_without_showing_secrets() {
        let cases = [
            ("https://me:hunter2@git.example/shop.git", None),
            ("https://me:hunter2@git.example/", None),
            ("git@git.example:acme/shop.git", None),
            ("ssh://git@git.example/acme/shop.git", None),
            ("file:///srv/acme/shop.git", None),
            ("https://git.example/acme/shop", Some("hunter2")),
            ("https://git.example/acme/shop", Some("ftp://me:hunter2@git.example")),
        ];
        for (repository, forge) in cases {
            let problem = RepositoryAddress::new(repository, forge).unwrap_err().one_line();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn odd_names_stay_inside_their_segment() {
        let address = RepositoryAddress::new("https://git.example/g/acme/a%20b%2fc", None).unwrap();
        let url = address.api(["api", "v1", "repos", &address.owner, "a?b/c"]);
        assert_eq!(url.as_str(), "https://git.example/g/api/v1/repos/acme/a%3Fb%2Fc");
    }
}
