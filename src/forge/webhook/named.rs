//! Which repository a call says that it is about, beside the one that it was sent for.

use serde_json::Value;

use super::comment::{is_path, number, text};

/// Ids of hosts are numbers and UUIDs.
const LONGEST_ID: usize = 64;

/// A repository as its host names it in a call. Parts that the call does not have, or that are unusable, are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Where it is on its host, such as `acme/shop`.
    pub path: Option<String>,
    /// The host's id of it, which stays when it is renamed or handed over.
    pub id: Option<String>,
}

/// Which repository a call means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// The one that is watched, as far as the call says.
    Watched,
    /// The same under another name; what people should know of that.
    Renamed(String),
    /// Another one; why the call is of no interest.
    Another(String),
}

impl Named {
    /// A repository in the words of GitHub, which most hosts share.
    pub(in crate::forge) fn full_name(payload: &Value) -> Self {
        Self::of(text(payload, "/repository/full_name").map(str::to_owned), number(payload, "/repository/id"))
    }

    /// A repository that a host knows by a number.
    pub(in crate::forge) fn of(path: Option<String>, id: Option<u64>) -> Self {
        Self::known_by(path, id.map(|id| id.to_string()))
    }

    /// The same with an id of any form.
    pub(in crate::forge) fn known_by(path: Option<String>, id: Option<String>) -> Self {
        let is_id =
            |id: &String| (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
        Self { path: path.filter(|path| is_path(path)), id: id.filter(is_id) }
    }

    /// Whether it has this path; hosts do not tell capital letters apart.
    pub fn is_at(&self, path: &str) -> bool {
        self.path.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(path))
    }

    /// Which repository is meant, where the one at `watched` is watched, whose id was `known` when a call named it so. The id
    /// decides; as long as none is known, a name may have changed.
    pub fn meant(&self, watched: &str, known: Option<&str>) -> Meant {
        let Some(path) = self.path.as_ref().filter(|_| !self.is_at(watched)) else { return Meant::Watched };
        if let (Some(id), Some(known)) = (&self.id, known)
            && id != known
        {
            return Meant::Another(format!("the call is about `{path}`, and `{watched}` is watched"));
        }
        Meant::Renamed(format!(
            "the host calls the repository `{path}`, and `{watched}` is watched: set its address to where it is now"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::forge::webhook::{Call, Host};

    #[test]
    fn every_host_names_its_repositories() {
        let github =
            json!({"ref": "refs/heads/main", "repository": {"id": 35, "full_name": "acme/shop", "name": "shop"}});
        let gitlab = json!({"project": {"id": 35, "name": "Shop", "path_with_namespace": "acme/team/shop"}});
        let cloud = json!({"repository": {"uuid": "{9970a9b6}", "full_name": "acme/shop", "name": "Shop"}});
        let data_center = json!({"id": 35, "slug": "shop", "name": "Shop", "project": {"key": "ACME", "id": 2}});
        let of_pull = json!({"pullRequest": {"id": 7, "toRef": {"repository": data_center}}});
        let azure = json!({"eventType": "git.push", "resource": {
            "repository": {"id": "278d5cd2-584d", "name": "shop", "project": {"id": "6ce954b1", "name": "acme"}},
        }});
        for (host, payload, path, id) in [
            (Host::Github, &github, Some("acme/shop"), Some("35")),
            (Host::Gitea, &github, Some("acme/shop"), Some("35")),
            (Host::Forgejo, &github, Some("acme/shop"), Some("35")),
            (Host::Gogs, &github, Some("acme/shop"), Some("35")),
            (Host::Gitlab, &gitlab, Some("acme/team/shop"), Some("35")),
            (Host::BitbucketCloud, &cloud, Some("acme/shop"), Some("{9970a9b6}")),
            (Host::BitbucketDataCenter, &json!({"repository": data_center}), Some("ACME/shop"), Some("35")),
            (Host::BitbucketDataCenter, &of_pull, Some("ACME/shop"), Some("35")),
            (Host::Azure, &azure, Some("acme/shop"), Some("278d5cd2-584d")),
            (Host::Github, &json!({"repository": {"id": {}, "full_name": "acme/../shop"}}), None, None),
            (Host::Github, &json!([]), None, None),
        ] {
            let named = host.repository(&Call::read(host, payload.to_string().as_bytes()).unwrap());
            assert_eq!((named.path.as_deref(), named.id.as_deref()), (path, id), "{host:?}");
        }
    }

    #[test]
    fn a_repository_is_known_by_its_id_whatever_it_is_called() {
        let named = |path: &str, id: Option<u64>| Named::of(Some(path.to_owned()), id);
        let renamed = "the host calls the repository `acme/store`, and `acme/shop` is watched: set its address to where it is now";
        let another = "the call is about `acme/store`, and `acme/shop` is watched";
        for (named, known, expected) in [
            (named("acme/shop", Some(35)), Some("35"), Meant::Watched),
            (named("Acme/Shop", Some(35)), None, Meant::Watched),
            // Made anew under its name.
            (named("acme/shop", Some(36)), Some("35"), Meant::Watched),
            (named("acme/store", Some(35)), Some("35"), Meant::Renamed(renamed.to_owned())),
            (named("acme/store", Some(36)), Some("35"), Meant::Another(another.to_owned())),
            (named("acme/store", Some(36)), None, Meant::Renamed(renamed.to_owned())),
            (named("acme/store", None), Some("35"), Meant::Renamed(renamed.to_owned())),
            (Named::default(), Some("35"), Meant::Watched),
        ] {
            assert_eq!(named.meant("acme/shop", known), expected, "{named:?} {known:?}");
        }
    }
}
