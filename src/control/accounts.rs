//! Users and groups of this machine, as its files list them; other directories are not asked.

use std::fs;

/// The name of a user, or its number where the machine's files list none.
pub fn user_name(id: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(&users, id).map_or_else(|| format!("user {id}"), str::to_owned)
}

/// The number of a group that is named, or given by its number.
pub fn group_id(name: &str) -> Option<u32> {
    let groups = || fs::read_to_string("/etc/group").unwrap_or_default();
    name.parse().ok().or_else(|| id_of(&groups(), name))
}

/// `/etc/passwd` and `/etc/group` begin alike: name, password, number.
fn entries(text: &str) -> impl Iterator<Item = (&str, u32)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((name, fields.nth(1)?.parse().ok()?))
    })
}

fn name_of(text: &str, id: u32) -> Option<&str> {
    entries(text).find(|(_, other)| *other == id).map(|(name, _)| name)
}

fn id_of(text: &str, name: &str) -> Option<u32> {
    entries(text).find(|(other, _)| *other == name).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_found_by_each_other() {
        let text = "root:x:0:0:root:/root:/bin/sh\n\n+::::::\nbroken:x:one\ngit:x:998:998::/srv/git:/bin/sh\n";
        assert_eq!((name_of(text, 998), name_of(text, 1)), (Some("git"), None));
        assert_eq!((id_of(text, "git"), id_of(text, "broken"), id_of(text, "")), (Some(998), None, None));
    }

    #[test]
    fn a_number_is_itself() {
        assert_eq!(group_id("4242424"), Some(4_242_424));
        assert_eq!(user_name(4_242_424), "user 4242424");
    }
}
