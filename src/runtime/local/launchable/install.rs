//! Getting a launchable's content: exported, copied or downloaded, verified, unpacked.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use aws_lc_rs::digest::{Context as Hasher, SHA256};

use super::TreeExport;
use super::archive;
use super::disk::{CopyError, copy_bounded, inspect, on_disk};
use super::folder::Folder;
use super::image::Image;
use super::limits::{Budget, Limits};
use crate::error::{Context as _, Failure, Result};
use crate::http_client;
use crate::model::ids::RepositoryName;
use crate::runtime::local::host::files;

/// How long a server may take to be reached, and how long it may be silent.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a download may take.
const DOWNLOAD: Duration = Duration::from_secs(30 * 60);

/// What installing needs from outside.
pub(super) struct Sources<'a> {
    pub(super) trees: &'a dyn TreeExport,
    pub(super) limits: Limits,
    pub(super) ca_file: Option<&'a Path>,
}

impl Sources<'_> {
    /// Brings an image's content into a folder that was just made.
    pub(super) fn fill(&self, folder: &Folder, repository: &RepositoryName, image: &Image) -> Result<()> {
        match image {
            Image::Host => return Ok(()),
            Image::Tree { path, id } => self.trees.export(repository, id, path, &folder.tree())?,
            Image::File { path, digest } => {
                let source = open(path, image)?;
                self.unpack(folder, image, digest.as_deref(), |archive| self.copy(source, path, archive))?;
            }
            Image::Web { url, digest } => {
                self.unpack(folder, image, Some(digest), |archive| self.download(url, image, archive))?;
            }
        }
        inspect(&folder.tree(), self.limits)
    }

    /// Unpacks an archive that `fetch` writes, after its digest, which `fetch` returns, was found right.
    fn unpack(
        &self,
        folder: &Folder,
        image: &Image,
        wanted: Option<&str>,
        fetch: impl FnOnce(&mut File) -> Result<String>,
    ) -> Result<()> {
        let path = folder.archive();
        let mut file = files::make_file(&path).map_err(on_disk(|| format!("cannot install `{image}`")))?;
        let found = fetch(&mut file)?;
        if wanted.is_some_and(|wanted| wanted != found) {
            let wanted = wanted.unwrap_or_default();
            return Err(Failure::stalled(format!("`{image}` has the digest sha256:{found}, not sha256:{wanted}"))
                .hint("change the digest if the archive was meant to change, else put back the one that was meant"));
        }
        archive::extract(&path, &folder.tree(), self.limits)?;
        std::fs::remove_file(&path).map_err(on_disk(|| format!("cannot remove `{}`", path.display())))
    }

    fn copy(&self, mut source: File, path: &Path, archive: &mut File) -> Result<String> {
        let mut hasher = Hasher::new(&SHA256);
        let copied = copy_bounded(&mut source, archive, &mut Budget::new(self.limits), |piece| hasher.update(piece));
        copied.map_err(|error| match error {
            CopyError::Read(error) => on_disk(|| format!("cannot read `{}`", path.display()))(error),
            CopyError::Write(error) => on_disk(|| format!("cannot copy `{}`", path.display()))(error),
            CopyError::Limit(failure) => failure,
        })?;
        Ok(hex(hasher))
    }

    fn download(&self, url: &str, image: &Image, archive: &mut File) -> Result<String> {
        let failed = || format!("cannot download `{image}`");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(on_disk(failed))?;
        runtime.block_on(self.receive(url, image, archive))
    }

    async fn receive(&self, url: &str, image: &Image, archive: &mut File) -> Result<String> {
        // The address may hold a token: it is left out of the error.
        let failed = |error: reqwest::Error| {
            Failure::transient(format!("cannot download `{image}`")).because(error.without_url())
        };
        let response = self.client(image)?.get(url).send().await.map_err(failed)?;
        let status = response.status();
        if !status.is_success() {
            return Err(answered(image, status));
        }
        let (mut response, mut hasher, mut budget) = (response, Hasher::new(&SHA256), Budget::new(self.limits));
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            budget.take_bytes(piece.len() as u64)?;
            hasher.update(&piece);
            archive.write_all(&piece).map_err(on_disk(|| format!("cannot download `{image}`")))?;
        }
        Ok(hex(hasher))
    }

    fn client(&self, image: &Image) -> Result<reqwest::Client> {
        let builder = reqwest::Client::builder().https_only(true).no_gzip().connect_timeout(SILENCE);
        let client = http_client::trusting(builder.read_timeout(SILENCE).timeout(DOWNLOAD), self.ca_file);
        client.or_stalled(|| format!("cannot download `{image}`"))
    }
}

/// A server that is in trouble may recover; one that refuses does not change its mind.
fn answered(image: &Image, status: reqwest::StatusCode) -> Failure {
    let message = format!("cannot download `{image}`: the server answered {status}");
    if status.is_server_error() || status == reqwest::StatusCode::TOO_MANY_REQUESTS {
        return Failure::transient(message);
    }
    Failure::stalled(message).hint("check the address; the server must give the archive without a password")
}

fn open(path: &Path, image: &Image) -> Result<File> {
    match File::open(path) {
        Ok(file) => Ok(file),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            Err(Failure::stalled(format!("launchable `{image}` cannot be opened"))
                .because(error)
                .hint("the archive must be a file on the machine that runs launchway, and readable for it"))
        }
        Err(error) => Err(on_disk(|| format!("cannot read `{}`", path.display()))(error)),
    }
}

/// The SHA-256 of a file in hex.
pub(super) fn digest_of(path: &Path, image: &Image) -> Result<String> {
    let mut file = open(path, image)?;
    let (mut hasher, mut buffer) = (Hasher::new(&SHA256), vec![0; 64 << 10]);
    loop {
        let count = file.read(&mut buffer).map_err(on_disk(|| format!("cannot read `{}`", path.display())))?;
        match buffer.get(..count) {
            Some(piece) if !piece.is_empty() => hasher.update(piece),
            _ => return Ok(hex(hasher)),
        }
    }
}

fn hex(hasher: Hasher) -> String {
    hasher.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
