//! The tokens by which deployers are known. Nothing keeps one: it follows from the daemon's key, the life of its store, and
//! the pod that it is for, and whoever shows it is asked for no more than that.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use crate::engine::deployment::deployer::{TOKEN_KEY, at_work, token_secret};
use crate::model::ids::{Incarnation, PodName, RunId};
use crate::model::object::{Kind, ObjectKey};
use crate::model::run::{DeploymentRun, Run};

/// Between the parts of a token.
const SEPARATOR: char = '.';

/// Makes and knows the tokens of deployers.
#[derive(Clone)]
pub struct DeployerTokens {
    key: Arc<Key>,
    life: Incarnation,
}

impl fmt::Debug for DeployerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeployerTokens(…)")
    }
}

impl DeployerTokens {
    /// The tokens of a daemon with this secret, in a life of its store.
    pub fn new(secret: &[u8], life: Incarnation) -> Self {
        Self { key: Arc::new(Key::new(HMAC_SHA256, secret)), life }
    }

    /// Which deployment whoever shows a token says to be the deployer of.
    pub fn claimed(token: &str) -> Option<RunId> {
        let (run, _) = token.split_once(SEPARATOR)?;
        String::from_utf8(BASE64.decode(run).ok()?).ok().map(RunId::new)
    }

    /// The pod of a deployment's deployer, if the token is its own and it is at work. How much of a token is right cannot be
    /// told from how long this takes.
    pub fn deployer<'a>(&self, token: &str, run: &'a DeploymentRun) -> Option<&'a PodName> {
        let pod = at_work(run)?;
        let shown = BASE64.decode(token.split_once(SEPARATOR)?.1).ok()?;
        hmac::verify(&self.key, self.message(run, pod).as_bytes(), &shown).ok()?;
        Some(pod)
    }

    /// The Secret from which a deployer's pod has its token, if that is what `pod` is to `run`.
    pub(super) fn secret_of(&self, run: &Run, pod: &PodName) -> Option<(ObjectKey, Value)> {
        let Run::Deployment(run) = run else { return None };
        at_work(run).filter(|deployer| *deployer == pod)?;
        let key = ObjectKey { kind: Kind::Secret, name: token_secret(pod) };
        Some((key, json!({"stringData": {TOKEN_KEY: self.token(run, pod)}})))
    }

    fn token(&self, run: &DeploymentRun, pod: &PodName) -> String {
        let tag = hmac::sign(&self.key, self.message(run, pod).as_bytes());
        format!("{}{SEPARATOR}{}", BASE64.encode(run.id.as_str()), BASE64.encode(tag))
    }

    fn message(&self, run: &DeploymentRun, pod: &PodName) -> String {
        format!("deployer\n{}\n{}\n{}\n{pod}", self.life, run.id, run.created_at.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures::{delivery, deploying, deployment};
    use crate::model::deployment_config::HookPoint;
    use crate::model::outcome::PodOutcome;
    use crate::model::run::{HookRecord, Phase};
    use crate::model::time::Timestamp;

    fn at_work_as(pod: &str) -> DeploymentRun {
        let mut run = deployment(2, "b", &deploying(delivery("s1", "b"), 2), Phase::Pending);
        let (by, point, started_at) = (run.parent.clone(), HookPoint::Deployer, Timestamp(1));
        run.hooks.push(HookRecord { point, by, pod: pod.into(), started_at, ended_at: None, outcome: None });
        run
    }

    #[test]
    fn a_token_is_good_for_one_deployer_in_one_life_and_while_it_is_at_work() {
        let tokens = |secret: &[u8], life: &str| DeployerTokens::new(secret, life.into());
        let (ours, run) = (tokens(b"secret", "one"), at_work_as("web-2-deploy"));
        let token = ours.token(&run, &"web-2-deploy".into());
        assert_eq!(DeployerTokens::claimed(&token), Some(run.id.clone()));
        assert_eq!(ours.deployer(&token, &run).map(PodName::as_str), Some("web-2-deploy"));
        assert_eq!(tokens(b"another", "one").deployer(&token, &run), None);
        assert_eq!(tokens(b"secret", "two").deployer(&token, &run), None);
        assert_eq!(ours.deployer(&token, &at_work_as("web-2-deploy-2")), None, "another attempt");
        let another = DeploymentRun { id: "shop/dev/web-3".into(), ..run.clone() };
        assert_eq!(ours.deployer(&token, &another), None);
        let mut over = run.clone();
        over.hooks[0].outcome = Some(PodOutcome::Succeeded);
        assert_eq!(ours.deployer(&token, &over), None);
        let (whose, _) = token.split_once(SEPARATOR).unwrap();
        for wrong in ["", ".", whose, &format!("{whose}."), &format!("{token}A"), &token[..token.len() - 1]] {
            assert_eq!(ours.deployer(wrong, &run), None, "{wrong:?}");
        }
        assert!(!format!("{ours:?}").contains("secret"));
    }
}
