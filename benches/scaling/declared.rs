//! What is pushed: many small deployment configs.

/// A deployment config of one process that does nothing; `say` is a part of its template.
pub(crate) fn config(number: u32, replicas: u32, say: &str) -> (String, String) {
    let text = format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: app-{number}}}\nspec:\n  \
         replicas: {replicas}\n  selector: {{app: app-{number}}}\n  triggers: [{{type: ConfigChange}}]\n  template:\n    \
         metadata: {{labels: {{app: app-{number}}}}}\n    spec:\n      terminationGracePeriodSeconds: 1\n      \
         containers:\n      - {{name: app, image: 'git:code', command: [sleep, '86400'], env: [{{name: SAY, value: '{say}'}}]}}\n"
    );
    (format!("deploy/{}/app-{number}.yaml", number / 100), text)
}

/// The same for many, with the code that they share.
pub(crate) fn configs(services: u32, replicas: u32, say: &str) -> Vec<(String, String)> {
    let code = ("code/README".to_owned(), "Nothing is needed.\n".to_owned());
    (0..services).map(|number| config(number, replicas, say)).chain([code]).collect()
}
