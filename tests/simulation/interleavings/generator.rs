//! Stories that a seed makes up.

use launchway::testing::interleaved::random::Random;
use launchway::testing::interleaved::story::Story;

/// What a family of stories is about; what leads to conflicts comes often in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    /// Pushes in quick succession, and pods that fail, hang and die.
    Pushes,
    /// Two commands at once on one service, while pushes go on.
    People,
    /// Several repositories, some of which declare the same project or stages of one namespace, while the daemon dies, the store is
    /// lost or restored, and names change hands.
    Repositories,
    /// The daemon dies, or is taken over.
    Deaths,
    /// The store is restored from an earlier copy, or lost.
    Stores,
    /// Stages are renamed, services get other configs, heads cannot be read or replace history, files say `paused`.
    Identities,
    /// Statuses are refused, images take their time, tests fail once, and what nothing needs is deleted.
    Surroundings,
    /// `Service` objects come, lead elsewhere, cannot listen, and go.
    Services,
    /// Tasks are done by executors, which answer late or never; people approve, abort, and run again.
    Executors,
    /// The daemon dies in the middle of what people, pushes and renames have set off, or its store is another one then.
    Interrupted,
    /// Deployers of the user's own say what runs, while pushes, people and deaths come in between.
    Deployers,
    /// Events of all kinds are told side by side, some of them late, twice, too early, or about nothing; somebody listens; people
    /// approve, abort, pause and run again.
    Events,
    /// Pushes rename what pods read, while they fail, hang and die, and people go back.
    Maps,
}

/// Those that seeds are of.
const FAMILIES: [(&str, Family); 13] = [
    ("pushes", Family::Pushes),
    ("people", Family::People),
    ("repositories", Family::Repositories),
    ("deaths", Family::Deaths),
    ("stores", Family::Stores),
    ("identities", Family::Identities),
    ("surroundings", Family::Surroundings),
    ("services", Family::Services),
    ("executors", Family::Executors),
    ("interrupted", Family::Interrupted),
    ("deployers", Family::Deployers),
    ("events", Family::Events),
    ("maps", Family::Maps),
];

/// How many of them are drawn. One that comes later takes seeds of its own, so that the others tell what they have told before.
const DRAWN: usize = 12;

/// The stages that stories have, with the tasks of each.
const SHIPYARDS: &[&str] = &[
    "dev",
    "dev production",
    "dev:deployment,test production",
    "dev:deployment,test",
    "dev:check,deployment,test production",
    "dev:deployment+2s production:check,deployment+1s,test",
];

/// The same where executors do some tasks, and people decide.
const LEFT_TO_OTHERS: &[&str] = &[
    "dev:verify,deployment,verify production:approval,deployment",
    "dev:deployment,approval production:deployment,verify",
    "dev:deployment,verify+1s production",
    "dev:approval,deployment,test production:verify,deployment",
    "dev:deployment,approval,test",
];

/// What is said of the tasks that are left to executors.
const LIMITS: &[&str] = &[
    "retries=1",
    "retries=2 timeout=1m",
    "heartbeat=30s",
    "heartbeat=1m retries=1",
    "start=30s",
    "executors=one,two",
    "executors=one,two retries=1 timeout=5m",
];

/// Where `Service` objects lead.
const LEADS: &[&str] = &["app=web", "app=web", "app=back", "app=api", "app=none", "app=web port=81"];

/// How `web` is deployed.
const HOOKS: &[&str] = &[
    "",
    "pre=Abort",
    "post=Abort",
    "mid=Abort",
    "pre=Retry",
    "strategy=Recreate",
    "strategy=Canary steps=10+1s?Abort,50+resume",
    "strategy=Canary steps=50+1m post=Abort",
    "strategy=BlueGreen keep=10m analysis=Abort",
    "strategy=AB weight=20",
];

/// The same by deployers of the user's own.
const DEPLOYERS: &[&str] = &[
    "strategy=Custom",
    "strategy=Custom deadline=900",
    "deployer=yes",
    "deployer=yes mid=Abort post=Abort",
    "deployer=yes strategy=Recreate",
];

/// The story of a seed, of one family if that is asked for.
pub(crate) fn story(seed: u64) -> Story {
    let mut random = Random::new(seed);
    let (_, drawn) = FAMILIES[random.below(DRAWN)];
    let drawn = if seed % 13 == 12 { Family::Maps } else { drawn };
    let asked = std::env::var("FAMILY").ok();
    let family = asked.map_or(drawn, |asked| FAMILIES.iter().find(|(name, _)| *name == asked).unwrap().1);
    told(seed, random, family)
}

/// The story of a seed in a family.
pub(crate) fn story_of(family: Family, seed: u64) -> Story {
    told(seed, Random::new(seed), family)
}

fn told(seed: u64, random: Random, family: Family) -> Story {
    let mut teller = Teller { random, lines: Vec::new() };
    teller.opening(family);
    for _ in 0..4 + teller.random.below(16) {
        teller.line(family);
        teller.pause();
    }
    Story { order: seed, lines: varied(seed, teller.lines) }
}

/// What some stories vary without drawing anything: in one of 17 each delivery has its turn, unless one deletes what others read or
/// bring again, in one of 19 a head is put back by force in place of a rewritten one, in one of five whole deliveries run again
/// in place of failed versions, in one of seven the first stage goes back from what fails after its deployment, and in one of
/// eleven whole stages are paused in place of deliveries or rollouts.
fn varied(seed: u64, lines: Vec<String>) -> Vec<String> {
    let deletes = lines.iter().any(|line| line.contains("needs=") || line.contains("remove "));
    let each_has_its_turn = |line: &String| match line.split_once("shipyard ") {
        Some((repository, stages)) if seed % 17 == 16 && !deletes => {
            let stages = stages.split(' ').map(|stage| stage.split(':').next().unwrap_or(stage));
            stages.map(|stage| format!("{repository}queue {stage} all")).collect()
        }
        _ => Vec::new(),
    };
    let goes_back = |line: &String| match line.split_once("shipyard ") {
        Some((repository, stages)) if seed % 7 == 6 => {
            let first = stages.split([' ', ':']).next().unwrap_or(stages);
            vec![
                format!("{repository}sequence {first} undo:rollback"),
                format!("{repository}triggered {first}.undo on {first}.delivery.finished result=fail"),
            ]
        }
        _ => Vec::new(),
    };
    let mut told = Vec::new();
    for line in lines {
        let turns = each_has_its_turn(&line).into_iter().chain(goes_back(&line)).collect::<Vec<_>>();
        let line = if seed % 19 == 18 { line.replace("push rewritten", "push back") } else { line };
        let line = match line.split_once("retry ") {
            Some((repository, config)) if seed % 5 == 4 => format!("{repository}rerun {}", config.replace('/', " ")),
            _ => line,
        };
        told.push(if seed % 11 == 10 { of_its_stage(line) } else { line });
        told.extend(turns);
    }
    told
}

/// A whole stage is paused or resumed in place of a delivery or a rollout in it.
fn of_its_stage(line: String) -> String {
    for (verb, of_stage) in [("pause", "pause-stage"), ("resume", "resume-stage")] {
        for asked in [format!("{verb}-delivery "), format!("{verb} ")] {
            if let Some((repository, place)) = line.split_once(&asked) {
                let stage = place.split(['/', ' ']).next().unwrap_or(place);
                return format!("{repository}{of_stage} {stage}");
            }
        }
    }
    line
}

struct Teller {
    random: Random,
    lines: Vec<String>,
}

impl Teller {
    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.random.below(words.len())]
    }

    /// What is declared at first.
    fn opening(&mut self, family: Family) {
        let stages =
            self.one_of(if matches!(family, Family::Executors | Family::Events) { LEFT_TO_OTHERS } else { SHIPYARDS });
        let repositories: &[&str] = if family == Family::Repositories { &["", "@two ", "@three "] } else { &[""] };
        let others = self.others(family);
        for repository in repositories {
            let project = match *repository {
                "" => "shop",
                "@two " => others[0],
                _ => others[1],
            };
            self.say(format!("{repository}project {project}"));
            self.say(format!("{repository}shipyard {stages}"));
            self.say(format!("{repository}task test retries=1"));
            self.say(format!("{repository}task check"));
            let replicas = 1 + self.random.below(3);
            self.say(format!("{repository}declare web image=a replicas={replicas}"));
        }
        if self.random.once_in(4) {
            self.say("statuses auto");
        }
        if self.random.once_in(8) {
            for number in 0..12 {
                self.say(format!("declare many{number} image=a"));
            }
        }
        if self.random.once_in(3) {
            self.say("declare back image=a service=web pre=Abort");
        }
        if family == Family::Services || self.random.once_in(4) {
            self.service();
        }
        if family == Family::Maps {
            self.map();
        }
        if family == Family::Executors && self.random.once_in(2) {
            self.say("sequence dev look:verify");
            self.say("triggered dev.look on dev.delivery.finished");
        }
        if family == Family::Events {
            self.sequences();
        }
        let hooks = self.one_of(if family == Family::Deployers { DEPLOYERS } else { HOOKS });
        self.say(format!("declare web {hooks}"));
        if family == Family::Deployers {
            self.say("hang shop-dev/web-2-deploy");
            if self.random.once_in(2) {
                self.say("declare east leader=web service=web image=a replicas=2");
            }
        }
        if self.random.once_in(2) {
            self.say("declare web kind=Deployment");
        }
        for repository in repositories {
            self.say(format!("{repository}push"));
        }
    }

    /// Which projects the second repository and the third declare: often one that another declares, too, or one whose stages may
    /// have the namespace of another's.
    fn others(&mut self, family: Family) -> [&'static str; 2] {
        match family {
            Family::Repositories if self.random.once_in(3) => ["store", "bazaar"],
            Family::Repositories => [(); 2].map(|()| self.one_of(&["shop", "shop", "store", "shop-api"])),
            _ => ["store"; 2],
        }
    }

    /// What else is run than deliveries, and how long that may take.
    fn sequences(&mut self) {
        self.say("listen");
        self.say("sequence dev look:verify,verify+1s");
        self.say("sequence dev fix:verify,approval,verify");
        let fires = self.one_of(&["problem.open", "dev.problem.open", "problem.open result=fail"]);
        self.say(format!("triggered dev.fix on {fires}"));
        if self.random.once_in(2) {
            let selected = self.one_of(&["", "", " result=pass", " result=fail", " verify.result=fail"]);
            self.say(format!("triggered dev.look on dev.delivery.finished{selected}"));
        }
        for sequence in ["dev.delivery", "dev.look", "dev.fix"] {
            if self.random.once_in(2) {
                let limit = self.one_of(LIMITS);
                self.say(format!("limit {sequence} verify {limit}"));
            }
        }
    }

    /// Something happens.
    fn line(&mut self, family: Family) {
        let repository = match family {
            Family::Repositories => self.one_of(&["", "@two ", "@three "]),
            _ => "",
        };
        match (self.random.below(12), family) {
            (2.., Family::Events) => self.events(),
            (7.., Family::Maps) => self.maps(),
            (0..4, _) => self.push(repository),
            (4, _) => self.change(),
            (5..7, _) => self.pods(),
            (7, _) if family != Family::Executors => self.time(),
            (8.., Family::People) => self.people(""),
            (8.., Family::Deaths) => {
                let line = self.one_of(&["crash", "crash", "takeover"]);
                self.say(line);
            }
            (8.., Family::Stores) => self.store(),
            (8.., Family::Surroundings) => self.surroundings(),
            (8.., Family::Services) => self.services(),
            (8.., Family::Deployers) => self.deployers(),
            (7.., Family::Executors) => self.executors(),
            (8..11, Family::Identities) => self.identity(),
            (8.., Family::Interrupted) => self.interrupted(),
            (9.., Family::Repositories) => self.owners(repository),
            _ if self.random.once_in(2) => self.people(repository),
            _ => self.push(repository),
        }
    }

    fn push(&mut self, repository: &str) {
        let config = self.one_of(&["web", "web", "web", "web", "api", "back service=web"]);
        let image = self.one_of(&["a", "b", "c", "d", "e"]);
        let stage = self.one_of(&["", "", "", "", " stage=dev", " stage=production"]);
        self.say(format!("{repository}declare {config} image={image}{stage}"));
        self.say(format!("{repository}push"));
    }

    fn change(&mut self) {
        let config = self.one_of(&["web", "web", "api"]);
        let setting = self.one_of(&[
            "replicas=1",
            "replicas=2",
            "replicas=4",
            "pre=Abort",
            "pre=Retry",
            "pre=",
            "post=Abort",
            "post=",
            "mid=Abort",
            "mid=",
            "strategy=Recreate",
            "strategy=Canary steps=25+resume?Abort",
            "strategy=BlueGreen keep=1m",
            "strategy=AB weight=40 mid=Abort",
            "strategy=",
            "trigger=none",
            "trigger=",
            "paused=true",
            "paused=",
        ]);
        self.say(format!("declare {config} {setting}"));
        if self.random.once_in(4) {
            match self.one_of(&["remove api", "remove back", "object ConfigMap colors red=1 service=web", "shipyard"]) {
                "shipyard" => {
                    let stages = self.one_of(SHIPYARDS);
                    self.say(format!("shipyard {stages}"));
                }
                line => self.say(line),
            }
        }
        self.say("push");
    }

    fn pods(&mut self) {
        let verb = self.one_of(&["hang", "hang", "fail", "linger", "heal", "heal", "finish", "reboot", "unknown"]);
        let prefix = self.one_of(&[
            "shop-dev/web-",
            "shop-dev/web-2",
            "shop-dev/web-test",
            "shop-production/web-",
            "shop-dev/web-2-hook",
            "shop-dev/back-",
        ]);
        match verb {
            "finish" | "reboot" => self.say(verb),
            verb => self.say(format!("{verb} {prefix}")),
        }
    }

    fn time(&mut self) {
        let line = self.one_of(&["settle", "settle", "settle", "pass 1s", "pass 1m", "pass 11m"]);
        self.say(line);
    }

    fn people(&mut self, repository: &str) {
        for _ in 0..1 + self.random.below(2) {
            let stage = self.one_of(&["dev", "dev", "dev", "production"]);
            let verb = self.one_of(&[
                "latest", "latest", "retry", "undo", "cancel", "scale", "scale", "trigger", "force", "down", "up",
                "hold", "release", "pause", "resume", "promote",
            ]);
            let line = match verb {
                "trigger" => format!("trigger {stage} web"),
                "force" => format!("trigger {stage} web urgent"),
                "hold" => format!("hold {stage} web x"),
                "scale" => format!("scale {stage}/web {}", 1 + self.random.below(4)),
                "down" | "up" | "release" => verb.to_owned(),
                verb => format!("{verb} {stage}/web"),
            };
            self.say(format!("{repository}{line}"));
            if self.random.once_in(2) {
                self.few_turns();
            }
        }
    }

    /// Something gets another name or another place, or comes back.
    fn identity(&mut self) {
        let line = self.one_of(&[
            "shipyard production",
            "shipyard test:deployment,test production",
            "shipyard dev test:check,deployment production",
            "shipyard production dev",
            "declare web service=front",
            "declare web service=",
            "declare back image=b service=front",
            "declare back image=b service=web",
            "declare web paused=true",
            "declare web paused=",
            "release dev/web",
            "release production/web",
            "accept-rewrite",
            "accept-rewrite",
            "allow-prune",
            "push broken",
            "push rewritten",
            "push rewritten",
        ]);
        self.say(line);
        if line.starts_with("shipyard") {
            let image = self.one_of(&["a", "b", "c"]);
            self.say(format!("declare web image={image}")); // a new stage declares nothing yet
        }
        if line.starts_with("shipyard") || line.starts_with("declare") {
            self.say("push");
        }
    }

    fn service(&mut self) {
        let name = self.one_of(&["front", "front", "web", "shared"]);
        let leads = self.one_of(LEADS);
        let delivered_with = self.one_of(&["web", "web", "web", "api", "front"]);
        let stage = self.one_of(&["", "", "", " stage=dev", " stage=production"]);
        self.say(format!("object Service {name} {leads} service={delivered_with}{stage}"));
    }

    /// What pods read gets another name, perhaps one that it had before, or another content.
    fn map(&mut self) {
        let name = self.one_of(&["red", "blue", "green"]);
        let whose = self.one_of(&[" service=web", " service=web", ""]);
        let content = self.one_of(&["1", "2", "3"]);
        self.no_maps();
        self.say(format!("object ConfigMap {name} c={content}{whose}"));
        self.say(format!("declare web needs={name}"));
    }

    fn no_maps(&mut self) {
        for old in ["red", "blue", "green"] {
            self.say(format!("remove {old}"));
        }
    }

    fn maps(&mut self) {
        match self.random.below(8) {
            0 => self.say("crash"),
            1 => self.people(""),
            2 => {
                let line = self.one_of(&["declare web needs=", "declare web needs=", "remove web", "allow-prune"]);
                self.say(line);
                if line == "declare web needs=" {
                    // What is named and not there is waited for: nobody takes away what goes on being named.
                    self.no_maps();
                }
                self.say("push");
            }
            3 => self.change(),
            _ => {
                self.map();
                let image = self.one_of(&["a", "b", "c", "d"]);
                self.say(format!("declare web image={image}"));
                self.say("push");
            }
        }
    }

    fn services(&mut self) {
        match self.random.below(8) {
            0 => {
                let name =
                    self.one_of(&["stop-listening front out of order", "stop-listening web", "let-listen front"]);
                self.say(name);
            }
            1 => {
                let name = self.one_of(&["remove front", "remove front", "remove shared"]);
                self.say(name);
                self.say("push");
            }
            2 => self.store(),
            3 => self.say("crash"),
            4 => self.people(""),
            _ => {
                self.service();
                self.say("push");
            }
        }
    }

    /// Deployers ask, and whatever may come in between.
    fn deployers(&mut self) {
        match self.random.below(9) {
            8 => {
                let line = self.one_of(&[
                    "declare east leader=web service=web image=b",
                    "declare east leader=web service=web image=c replicas=1",
                    "declare west leader=web service=web image=a",
                    "remove east",
                    "remove west",
                    "declare web strategy=Custom",
                ]);
                self.say(line);
                self.say("push");
            }
            0 => {
                let line =
                    self.one_of(&["hang shop-dev/web-3-deploy", "hang shop-dev/web-", "heal shop-dev/web-", "finish"]);
                self.say(line);
            }
            1 => self.say("crash"),
            2 => self.people(""),
            3 => self.change(),
            _ => {
                let stage = self.one_of(&["dev", "dev", "production"]);
                let asked = self.one_of(&[
                    "new=1",
                    "new=1 old=1",
                    "new=2 old=0",
                    "new=0 old=0",
                    "old=1",
                    "until=0",
                    "until=30",
                    "until=100",
                    "of=east new=1 old=1",
                    "of=east new=2 old=0",
                    "of=west new=1",
                ]);
                self.say(format!("deployer {stage}/web {asked}"));
                self.few_turns();
            }
        }
    }

    /// Executors get on with tasks, or do not; people decide about sequences.
    fn executors(&mut self) {
        let stage = self.one_of(&["dev", "dev", "production"]);
        let name = self.one_of(&["one", "one", "two"]);
        match self.random.below(12) {
            0..4 => {
                self.say(format!("executor {name} starts {stage} web"));
                if self.random.once_in(2) {
                    self.few_turns();
                    self.say(format!("executor {name} finishes {stage} web"));
                }
            }
            4 => self.say(format!("executor {name} finishes {stage} web")),
            5 => self.say(format!("executor {name} finishes {stage} web fail")),
            6 => self.say(format!("executor {name} reports {stage} web")),
            7 => {
                let verb = self.one_of(&["approve", "approve", "reject"]);
                self.say(format!("{verb} {stage} web"));
            }
            8 => self.say(format!("abort {stage} web")),
            9 => {
                let from = self.one_of(&["", " from-start"]);
                self.say(format!("rerun {stage} web{from}"));
            }
            10 => self.time(),
            _ => {
                let line = self.one_of(&["crash", "pass 11m", "takeover", "down", "up", "shipyard dev production"]);
                self.say(line);
            }
        }
    }

    /// Events are told, one after the other or side by side, whether they fit or not.
    fn events(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            let phase = self.one_of(&["started", "finished", "finished", "status.changed"]);
            let stage = self.one_of(&["dev", "dev", "dev", "production"]);
            match self.random.below(12) {
                0..5 => self.executors(),
                5 => {
                    let back = self.random.below(4);
                    self.say(format!("tell again {back}"));
                }
                6 => {
                    let how = self.one_of(&["late", "late", "early", "mistaken", "unknown"]);
                    self.say(format!("tell {how} {phase} {stage} web"));
                }
                7 => {
                    let service = self.one_of(&["web", "web", "back", "stray"]);
                    self.say(format!("tell domain problem.open dev {service}"));
                }
                8 => {
                    let sequence =
                        self.one_of(&["dev look", "dev look", "dev fix", "dev delivery", "production delivery"]);
                    let service = self.one_of(&["web", "web", "stray"]);
                    self.say(format!("tell sequence {sequence} {service}"));
                }
                9 => {
                    let (verb, whole) = (self.one_of(&["pause", "resume", "resume"]), self.one_of(&["", " all"]));
                    self.say(format!("{verb}-delivery {stage} web{whole}"));
                }
                10 => {
                    let line = self.one_of(&["refuse-events", "take-events", "crash", "release", "pass 30s", "settle"]);
                    self.say(line);
                }
                _ => {
                    let (name, what) = (self.one_of(&["one", "two"]), self.one_of(&["starts", "finishes", "reports"]));
                    let service = self.one_of(&["web", "stray", "back"]);
                    self.say(format!("executor {name} {what} {stage} {service}"));
                }
            }
        }
    }

    /// Who has which name is asked anew: after a death, by another store, or because a stage is wanted elsewhere.
    fn owners(&mut self, repository: &str) {
        match self.random.below(10) {
            0 => self.say("crash"),
            1 => self.say("takeover"),
            8.. if !self.lines.iter().any(|line| line.starts_with("backup") || line == "lose-store") => {
                self.rename(repository);
            }
            2..5 if self.is_renamed() => self.push(repository),
            2..5 if self.is_contested() => {
                // What is copied knows whose each name is: the second to ask for it gets none that the first has.
                self.say("settle");
                self.copies();
            }
            2..5 => self.store(),
            5 => {
                let line = self.one_of(&["prune 0", "prune 2"]);
                self.say(line);
            }
            _ => {
                let stages = self.one_of(&["dev", "dev production", "api-dev", "production dev"]);
                self.say(format!("{repository}shipyard {stages}"));
                let image = self.one_of(&["a", "b", "c"]);
                self.say(format!("{repository}declare web image={image}")); // a new stage declares nothing yet
                self.say(format!("{repository}push"));
            }
        }
    }

    /// A project gets another name, which may be another's, or leaves its own to one that was refused it.
    fn rename(&mut self, repository: &str) {
        if self.random.once_in(2) {
            for line in ["remove web", "push", "allow-prune"] {
                self.say(format!("{repository}{line}"));
            }
            self.say("settle"); // nothing is left behind
        }
        let project = self.one_of(&["shop", "store", "bazaar", "shop-api"]);
        self.say(format!("{repository}project {project}"));
        self.say(format!("{repository}push"));
    }

    /// Whether a project was called otherwise before: a store that was copied then knows nothing of what is there by its new name.
    fn is_renamed(&self) -> bool {
        self.lines.iter().filter(|line| line.contains("project ")).count() > 3
    }

    /// Whether two repositories declare one project, or projects whose stages may have one namespace.
    fn is_contested(&self) -> bool {
        let declared = self.lines.iter().filter_map(|line| line.split_once("project ")).map(|(_, name)| name);
        let declared: Vec<&str> = declared.collect();
        declared.iter().enumerate().any(|(index, name)| *name == "shop-api" || declared[..index].contains(name))
    }

    /// Something that takes several steps, and a death or another store between two of them.
    fn interrupted(&mut self) {
        match self.random.below(6) {
            0 => self.identity(),
            1 => self.surroundings(),
            2 => self.push(""),
            _ => self.people(""),
        }
        let turns = 1 + self.random.below(12);
        self.say(format!("turns {turns}"));
        match self.random.below(6) {
            0 => self.store(),
            1 => self.say("takeover"),
            _ => self.say("crash"),
        }
    }

    fn store(&mut self) {
        let copied = self.copied();
        match self.random.below(4) {
            0 => self.say("lose-store"),
            1 if copied > 0 => self.say(format!("restore {copied}")),
            _ => self.say(format!("backup {}", copied + 1)),
        }
    }

    fn copies(&mut self) {
        let copied = self.copied();
        match self.random.below(2) {
            0 if copied > 0 => self.say(format!("restore {copied}")),
            _ => self.say(format!("backup {}", copied + 1)),
        }
    }

    fn copied(&self) -> usize {
        self.lines.iter().filter(|line| line.starts_with("backup")).count()
    }

    fn surroundings(&mut self) {
        let line = self.one_of(&[
            "prune 0",
            "prune 0",
            "prune 2",
            "refuse-statuses busy",
            "refuse-statuses rights",
            "take-statuses",
            "prepare b",
            "prepare c",
            "prepared b",
            "fail shop-dev/web-test",
            "heal shop-dev/web-test",
            "trigger dev web",
            "remove web",
            "allow-prune",
        ]);
        self.say(line);
        if line == "remove web" {
            self.say("push");
        }
    }

    /// Most lines come while others are under way.
    fn pause(&mut self) {
        match self.random.below(8) {
            0 => {}
            1 => self.say("settle"),
            2..4 => {
                self.say("settle");
                self.say("pass 1s");
            }
            _ => self.few_turns(),
        }
    }

    fn few_turns(&mut self) {
        let most = [4, 20, 80, 300][self.random.below(4)];
        let line = format!("turns {}", 1 + self.random.below(most));
        self.say(line);
    }
}
