//! Tiny images, written by hand, and pushed by the API of registries.

use aws_lc_rs::digest::{SHA256, digest};
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::server::Real;

/// An image of one layer with one file.
pub(super) struct Image {
    word: &'static str,
    kinds: Kinds,
    platforms: Vec<&'static str>,
}

/// The media types of a format.
#[derive(Clone, Copy)]
struct Kinds {
    config: &'static str,
    layer: &'static str,
    manifest: &'static str,
    index: &'static str,
}

const OCI: Kinds = Kinds {
    config: "application/vnd.oci.image.config.v1+json",
    layer: "application/vnd.oci.image.layer.v1.tar+gzip",
    manifest: "application/vnd.oci.image.manifest.v1+json",
    index: "application/vnd.oci.image.index.v1+json",
};
const DOCKER: Kinds = Kinds {
    config: "application/vnd.docker.container.image.v1+json",
    layer: "application/vnd.docker.image.rootfs.diff.tar.gzip",
    manifest: "application/vnd.docker.distribution.manifest.v2+json",
    index: "application/vnd.docker.distribution.manifest.list.v2+json",
};

impl Image {
    /// One whose file has this word.
    pub(super) fn of(word: &'static str) -> Self {
        Self { word, kinds: OCI, platforms: Vec::new() }
    }

    /// The same as Docker writes it.
    pub(super) fn for_docker(self) -> Self {
        Self { kinds: DOCKER, ..self }
    }

    /// The same, one for each of these platforms.
    pub(super) fn for_platforms(self, platforms: &[&'static str]) -> Self {
        Self { platforms: platforms.to_vec(), ..self }
    }
}

/// Somebody who pushes.
pub(super) struct Client {
    base: String,
    authorization: Option<String>,
    client: reqwest::Client,
}

impl Client {
    /// One who pushes `acme/web`, and is let in by this.
    pub(super) fn new(real: &Real, authorization: Option<String>) -> Self {
        let base = format!("http://{}/v2/acme/web", real.address);
        Self { base, authorization, client: reqwest::Client::new() }
    }

    /// Pushes an image; gives the digest that the registry says.
    pub(super) async fn push(&self, image: &Image, tag: &str) -> String {
        let kinds = image.kinds;
        if image.platforms.is_empty() {
            return self.manifest(tag, kinds.manifest, &self.image(image, "amd64").await).await;
        }
        let mut manifests = Vec::new();
        for platform in &image.platforms {
            let manifest = self.image(image, platform).await;
            let digest = self.manifest(&named(&text(&manifest)), kinds.manifest, &manifest).await;
            manifests.push(json!({
                "mediaType": kinds.manifest, "digest": digest, "size": text(&manifest).len(),
                "platform": {"os": "linux", "architecture": platform},
            }));
        }
        let index = json!({"schemaVersion": 2, "mediaType": kinds.index, "manifests": manifests});
        self.manifest(tag, kinds.index, &index).await
    }

    /// Pushes what is in an image; gives its manifest.
    async fn image(&self, image: &Image, platform: &str) -> Value {
        let tar = archive(image.word);
        let config = json!({
            "os": "linux", "architecture": platform, "config": {"Cmd": ["/word"]},
            "rootfs": {"type": "layers", "diff_ids": [named(&tar)]},
        });
        let config = self.blob(image.kinds.config, text(&config)).await;
        let layer = self.blob(image.kinds.layer, compressed(&tar)).await;
        json!({"schemaVersion": 2, "mediaType": image.kinds.manifest, "config": config, "layers": [layer]})
    }

    /// Pushes a blob; gives what a manifest says of it.
    async fn blob(&self, kind: &str, content: Vec<u8>) -> Value {
        let upload = self.send(self.request(Method::POST, &format!("{}/blobs/uploads/", self.base))).await;
        let location = upload.headers()["location"].to_str().unwrap();
        let (digest, size) = (named(&content), content.len());
        let to = format!("{location}{}digest={digest}", if location.contains('?') { '&' } else { '?' });
        self.send(self.request(Method::PUT, &to).body(content)).await;
        json!({"mediaType": kind, "digest": digest, "size": size})
    }

    async fn manifest(&self, name: &str, kind: &str, manifest: &Value) -> String {
        let request = self.request(Method::PUT, &format!("{}/manifests/{name}", self.base));
        let pushed = self.send(request.header("content-type", kind).body(text(manifest))).await;
        let said = pushed.headers()["docker-content-digest"].to_str().unwrap();
        assert_eq!(said, named(&text(manifest)));
        said.to_owned()
    }

    fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Response {
        let answer = request.send().await.unwrap();
        let status = answer.status();
        assert!(status.is_success(), "{status}: {}", answer.text().await.unwrap());
        answer
    }
}

fn archive(word: &str) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(word.len()).unwrap());
    header.set_mode(0o755);
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_data(&mut header, "word", word.as_bytes()).unwrap();
    archive.into_inner().unwrap()
}

fn compressed(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut encoder, tar).unwrap();
    encoder.finish().unwrap()
}

fn text(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn named(content: &[u8]) -> String {
    let hex: String = digest(&SHA256, content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
