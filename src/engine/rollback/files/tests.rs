use serde_json::json;

use super::*;
use crate::engine::fixtures::object;
use crate::manifest::digest;
use crate::model::shipyard::Shipyard;
use crate::testing::world::{deployment_config, project};

/// A tree in memory; the ids of its folders stand for what is in them.
#[derive(Default)]
struct Files(BTreeMap<&'static str, String>, BTreeMap<&'static str, &'static str>);

impl Tree for Files {
    fn file(&self, path: &str) -> Result<Option<String>> {
        Ok(self.0.get(path).cloned())
    }

    fn folder(&self, path: &str) -> Result<Option<String>> {
        Ok(self.1.get(path).map(|id| (*id).to_owned()))
    }
}

fn at(file: &str, line: u32) -> Object {
    let mut made = Object::clone(&object("a"));
    made.location = Location { file: file.into(), line, column: 5 };
    made
}

fn document(name: &str, value: &str) -> String {
    format!(
        "# {name} is {value}\nkind: DeploymentConfig\nmetadata: {{name: {name}}}\nspec: {{value: {value}}} # {value}\n"
    )
}

/// What becomes of the head's files where what was declared at the line of one file comes back in the place of what is
/// declared at the line of another.
fn restored(
    earlier: (&'static str, u32, &str),
    now: Option<(&'static str, u32)>,
    head: &[(&'static str, &str)],
) -> Vec<(String, String)> {
    let stage = StageName::new("dev");
    let (file, line, text) = earlier;
    let (earlier, now) = (at(file, line), now.map(|(file, line)| at(file, line)));
    let before = Files(BTreeMap::from([(file, text.to_owned())]), BTreeMap::new());
    let there = Files(head.iter().map(|(path, text)| (*path, (*text).to_owned())).collect(), BTreeMap::new());
    let mut edits = Edits::default();
    let member = Restored { stage: &stage, earlier: &earlier, now: now.as_ref() };
    edits.add_file(&member, &before, &there).expect("it can be told apart");
    edits.files.into_iter().collect()
}

#[test]
fn the_whole_file_comes_back_where_nothing_else_differs() {
    let (old, new) = (document("web", "1"), document("web", "2"));
    for (head, expected) in [
        (vec![("web.yaml", &*new)], ("web.yaml", &*old)),
        (vec![("web.yaml", "# an empty one\n")], ("web.yaml", &*old)),
    ] {
        let now = (head[0].1 == new).then_some(("web.yaml", 2));
        let found = restored(("web.yaml", 2, &old), now, &head);
        let (path, content) = &found[0];
        assert_eq!(path, expected.0);
        assert!(content.ends_with(expected.1), "{content}");
    }
    let both = |web: &str| format!("# all of it\n---\n{}---\n{}", document("web", web), document("api", "1"));
    let found = restored(("all.yaml", 4, &both("1")), Some(("all.yaml", 4)), &[("all.yaml", &both("2"))]);
    assert_eq!(found, [("all.yaml".to_owned(), both("1"))]);
    assert_eq!(restored(("web.yaml", 2, &old), Some(("web.yaml", 2)), &[("web.yaml", &old)]), [], "it is there");
}

#[test]
fn only_its_document_comes_back_where_others_have_changed() {
    let (web, api) = (|value: &str| document("web", value), |value: &str| document("api", value));
    let earlier = format!("{}---\n{}", web("1"), api("1"));
    let head = format!("# moved\n{}---\n{}", api("2"), web("2"));
    let found = restored(("all.yaml", 2, &earlier), Some(("all.yaml", 8)), &[("all.yaml", &head)]);
    assert_eq!(found, [("all.yaml".to_owned(), format!("# moved\n{}---\n{}", api("2"), web("1")))]);
    // The last document may end without a new line.
    let found = restored(
        ("web.yaml", 2, web("1").trim_end()),
        Some(("all.yaml", 2)),
        &[("all.yaml", &earlier.replace("value: 1", "value: 2"))],
    );
    assert_eq!(found[0].1, format!("{}---\n{}", web("1"), api("1").replace("value: 1", "value: 2")));
}

#[test]
fn a_document_may_begin_on_the_line_of_its_mark() {
    let inline =
        |name: &str, value: u32| format!("--- {{kind: DeploymentConfig, metadata: {{name: {name}}}, v: {value}}}\n");
    let both = |web: u32, api: u32| inline("api", api) + &inline("web", web);
    let found = restored(("all.yaml", 2, &both(1, 1)), Some(("all.yaml", 2)), &[("all.yaml", &both(2, 2))]);
    assert_eq!(found, [("all.yaml".to_owned(), both(1, 2))]);
    let block = format!("{}{}", inline("api", 1), "---\nkind: DeploymentConfig\nmetadata: {name: web}\nv: 1\n");
    let found = restored(("all.yaml", 3, &block), Some(("all.yaml", 2)), &[("all.yaml", &both(2, 2))]);
    assert_eq!(found, [("all.yaml".to_owned(), block.replacen("v: 1", "v: 2", 1))]);
}

#[test]
fn what_was_moved_or_deleted_since_comes_back_where_it_is_looked_for() {
    let (old, new) = (document("web", "1"), document("web", "2"));
    let moved = restored(("web.yaml", 2, &old), Some(("deploy/web.yaml", 2)), &[("deploy/web.yaml", &new)]);
    assert_eq!(moved, [("deploy/web.yaml".to_owned(), old.clone())]);
    assert_eq!(restored(("web.yaml", 2, &old), None, &[]), [("web.yaml".to_owned(), old.clone())]);
    let (api, both) = (document("api", "1"), format!("{old}---\n{}", document("api", "1")));
    assert_eq!(restored(("all.yaml", 2, &both), None, &[]), [("all.yaml".to_owned(), old.clone())], "nothing else");
    let beside = restored(("all.yaml", 2, &both), None, &[("all.yaml", &api)]);
    assert_eq!(beside, [("all.yaml".to_owned(), format!("{api}---\n{old}"))]);
}

#[test]
fn several_of_one_file_come_back_together() {
    let stage = StageName::new("dev");
    let earlier = format!("{}---\n{}", document("web", "1"), document("api", "1"));
    let head = format!("{}---\n{}---\n{}", document("web", "2\n# long"), document("api", "2"), document("job", "2"));
    let before = Files(BTreeMap::from([("all.yaml", earlier)]), BTreeMap::new());
    let there = Files(BTreeMap::from([("all.yaml", head)]), BTreeMap::new());
    let mut edits = Edits::default();
    for (name, was, is) in [("web", 2, 2), ("api", 7, 8)] {
        let rename = |line| {
            let mut made = at("all.yaml", line);
            made.key.name = name.to_owned();
            made
        };
        let (earlier, now) = (rename(was), rename(is));
        let member = Restored { stage: &stage, earlier: &earlier, now: Some(&now) };
        edits.add_file(&member, &before, &there).expect("they are apart");
    }
    let expected = format!("{}---\n{}---\n{}", document("web", "1"), document("api", "1"), document("job", "2"));
    assert_eq!(edits.files["all.yaml"], expected);
}

#[test]
fn several_of_one_list_come_back_together() {
    let stage = StageName::new("dev");
    let list =
        |value: &str| format!("kind: List\nitems:\n- {{name: web, value: {value}}}\n- {{name: api, value: {value}}}\n");
    let before = Files(BTreeMap::from([("all.yaml", list("1"))]), BTreeMap::new());
    for (more, expected) in [("", list("1")), ("---\nkind: other\n", format!("{}---\nkind: other\n", list("1")))] {
        let there = Files(BTreeMap::from([("all.yaml", list("2") + more)]), BTreeMap::new());
        let mut edits = Edits::default();
        for line in [3, 4] {
            let member = Restored { stage: &stage, earlier: &at("all.yaml", line), now: Some(&at("all.yaml", line)) };
            edits.add_file(&member, &before, &there).expect("the first has brought both");
        }
        assert_eq!(edits.files["all.yaml"], expected);
    }
}

#[test]
fn the_folders_of_images_come_back_as_trees() {
    let stage = StageName::new("dev");
    let mut earlier = at("app/web.yaml", 1);
    let images = json!({"spec": {"containers": [{"image": "git:app@1111"}, {"image": "host"}], "hook": {"image": "git:.@2222"}}});
    digest::exchange(&mut earlier, images);
    let head = Files(BTreeMap::new(), BTreeMap::from([("app", "3333"), ("", "2222")]));
    let member = Restored { stage: &stage, earlier: &earlier, now: Some(&earlier) };
    let mut edits = Edits::default();
    edits.add_folders(&member, &head).expect("a tree");
    assert_eq!(edits.folders, BTreeMap::from([("app".to_owned(), "1111".to_owned())]));
    edits.add_file(&member, &head, &head).expect_err("its file is not there");
    let before = Files(BTreeMap::from([("app/web.yaml", document("web", "1"))]), BTreeMap::new());
    edits.add_file(&member, &before, &head).expect("it comes with its folder");
    assert_eq!(edits.paths().collect::<Vec<_>>(), ["app/"]);
}

#[test]
fn a_folder_within_another_one_comes_back_with_it() {
    let stage = StageName::new("dev");
    let mut earlier = at("web.yaml", 1);
    let images = ["svc", "svc/web", "svcs", "other"].map(|folder| json!({"image": format!("git:{folder}@1111")}));
    digest::exchange(&mut earlier, json!({"spec": {"containers": images}}));
    let head =
        Files(BTreeMap::new(), BTreeMap::from([("svc", "2"), ("svc/web", "2"), ("svcs", "2"), ("other", "1111")]));
    let mut edits = Edits::default();
    edits.add_folders(&Restored { stage: &stage, earlier: &earlier, now: None }, &head).expect("a tree");
    assert_eq!(edits.paths().collect::<Vec<_>>(), ["svc/", "svcs/"]);
}

#[test]
fn a_folder_that_two_had_differently_comes_back_as_neither() {
    let stage = StageName::new("dev");
    let made = |name: &str, id: &str| {
        let mut made = at("web.yaml", 1);
        digest::exchange(&mut made, json!({"spec": {"containers": [{"image": format!("git:app@{id}")}]}}));
        made.key.name = name.to_owned();
        made
    };
    // What one goes back to may be what the head has.
    for (web, worker, is_one) in [("1111", "1111", true), ("1111", "2222", false), ("3333", "1111", false)] {
        let head = Files(BTreeMap::new(), BTreeMap::from([("app", "3333")]));
        let mut edits = Edits::default();
        let mut add =
            |earlier: &Object| edits.add_folders(&Restored { stage: &stage, earlier, now: Some(earlier) }, &head);
        add(&made("web", web)).expect("the first one");
        let second = add(&made("worker", worker));
        assert_eq!(second.is_ok(), is_one, "{web} {worker}");
        let told = second.err().map(|failure| failure.one_line()).unwrap_or_default();
        let expected = "`web` and `worker` go back to versions that had the folder `app` differently (name a revision";
        assert!(is_one || told.starts_with(expected), "{told}");
    }
}

#[test]
fn what_else_would_change_is_refused_by_name() {
    let declared = |web: &str, api: &str| {
        let objects = [deployment_config("web", web, 1, json!({})), deployment_config("api", api, 1, json!({}))];
        project(Shipyard::implicit(), &objects)
    };
    let stage = StageName::new("default");
    let web = ObjectKey { kind: crate::model::object::Kind::DeploymentConfig, name: "web".into() };
    let (head, good) = (declared("b", "a"), declared("a", "a"));
    let earlier = good.stages[0].objects.get(&web).expect("declared").clone();
    let member = Restored { stage: &stage, earlier: &earlier, now: None };
    check(&[member], &head, &good).expect("only what goes back");
    for (composed, expected) in [
        (declared("a", "b"), "restoring the files would also change DeploymentConfig/api in default"),
        (declared("b", "a"), "restoring the files does not bring back what `web` was in default"),
    ] {
        let refused = check(&[member], &head, &composed).expect_err("more changes");
        assert!(refused.one_line().starts_with(expected), "{}", refused.one_line());
    }
    let refused = check(&[member], &head, &declared("a", "b")).expect_err("more changes").one_line();
    assert!(refused.contains("`launchway rollback dc/web dc/api -s default --pull-request`"), "{refused}");
}

#[test]
fn a_task_may_run_the_code_that_comes_back_and_says_the_same_otherwise() {
    let declared = |value: &str, image: &str, retries: u32| {
        let mut declared = project(Shipyard::implicit(), &[deployment_config("web", value, 1, json!({}))]);
        let task =
            json!({"command": ["bin/test"], "image": image, "retries": retries, "location": Location::default()});
        let task = serde_json::from_value(task).expect("a task");
        declared.stages[0].tasks.insert("test".to_owned(), vec![task]);
        declared
    };
    let stage = StageName::new("default");
    let good = declared("a", "git:web@1111", 0);
    let earlier = good.stages[0].objects.iter().next().expect("declared").clone();
    let member = Restored { stage: &stage, earlier: &earlier, now: None };
    for (image, retries, is_refused) in
        [("git:web@2222", 0, false), ("git:web@2222", 1, true), ("git:api@1111", 0, true), ("host", 0, true)]
    {
        let checked = check(&[member], &declared("b", image, retries), &good);
        let refused = checked.err().map(|failure| failure.one_line()).unwrap_or_default();
        assert_eq!(refused.contains("the shipyard or its tasks"), is_refused, "{image} {retries}: {refused}");
    }
}
