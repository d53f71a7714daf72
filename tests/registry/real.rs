//! The registry that most others are made from, as a process: `github.com/distribution/distribution/v3/cmd/registry`.
//!
//! `REGISTRY=/path/to/registry cargo test --test registry -- --ignored`

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use launchway::registry::http::HttpRegistry;
use launchway::registry::{ImageName, Registry as _};

/// A running registry; it ends when dropped.
struct Real {
    process: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

async fn start() -> Real {
    let program = std::env::var("REGISTRY").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let config = format!(
        "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{address}'}}\n",
        folder.path().display()
    );
    let file = folder.path().join("config.yml");
    std::fs::write(&file, config).unwrap();
    let mut command = Command::new(program);
    let process = command.arg("serve").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let real = Real { process, address, _folder: folder };
    let since = Instant::now();
    while reqwest::get(format!("http://{}/v2/", real.address)).await.is_err() {
        assert!(since.elapsed() < Duration::from_secs(30), "it does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    real
}

/// Pushes a manifest of nothing with an annotation; gives the digest that the registry says.
async fn push(real: &Real, word: &str) -> String {
    let client = reqwest::Client::new();
    let base = format!("http://{}/v2/acme/web", real.address);
    let upload = client.post(format!("{base}/blobs/uploads/")).send().await.unwrap();
    let location = upload.headers()["location"].to_str().unwrap().to_owned();
    let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    let separator = if location.contains('?') { '&' } else { '?' };
    let pushed = client.put(format!("{location}{separator}digest={empty}")).body("{}").send().await.unwrap();
    assert!(pushed.status().is_success(), "{}", pushed.status());
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let config = format!(r#"{{"mediaType": "application/vnd.oci.empty.v1+json", "digest": "{empty}", "size": 2}}"#);
    let manifest = format!(
        r#"{{"schemaVersion": 2, "mediaType": "{kind}", "config": {config}, "layers": [{config}], "annotations": {{"w": "{word}"}}}}"#
    );
    let request = client.put(format!("{base}/manifests/prod")).header("content-type", kind).body(manifest);
    let pushed = request.send().await.unwrap();
    assert!(pushed.status().is_success(), "{}: {}", pushed.status(), pushed.text().await.unwrap());
    pushed.headers()["docker-content-digest"].to_str().unwrap().to_owned()
}

#[tokio::test]
#[ignore = "needs a registry: set REGISTRY to its program"]
async fn a_real_registry_says_what_a_tag_leads_to() {
    let (real, registry) = (start().await, HttpRegistry::default());
    let image = ImageName::parse(&format!("{}/acme/web:prod", real.address)).unwrap();
    let nothing = registry.look_up(&image, None).await.unwrap_err().one_line();
    assert!(nothing.contains("has no image"), "{nothing}");
    let first = push(&real, "one").await;
    let found = registry.look_up(&image, None).await.unwrap();
    assert_eq!(found.digest, first);
    assert_eq!(registry.look_up(&image, Some(&found)).await.unwrap(), found);
    let second = push(&real, "two").await;
    assert_ne!(first, second);
    assert_eq!(registry.look_up(&image, Some(&found)).await.unwrap().digest, second);
}
