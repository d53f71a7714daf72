//! Asks registries what the tags lead to that image streams have looked up there (`importPolicy.scheduled`).

use crate::engine::deployment::tag;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::model::deployment_config::ImageReference;
use crate::model::ids::RepositoryName;
use crate::model::image_stream::{DOCKER_IMAGE, ImageStreamSpec};
use crate::model::object::Kind;
use crate::model::state::{Imported, ObjectState};
use crate::model::transaction::ObjectPlace;
use crate::registry::{ImageName, Known, Registry};

/// A tag that is looked up.
struct Scheduled {
    place: ObjectPlace,
    tag: String,
    from: ImageReference,
    image: ImageName,
    known: Option<Known>,
}

/// Looks up every tag of a repository's image streams that asks for it, one after the other; says how many questions had no
/// answer. What one registry does not answer keeps nobody from the others.
///
/// # Errors
/// If the store fails.
pub async fn import(driver: &Driver, registry: &dyn Registry, repository: &RepositoryName) -> Result<u32> {
    let streams = driver.store.objects(None, None, Some(&Kind::ImageStream)).await?.found.into_iter();
    let own = streams.map(|stream| stream.value).filter(|stream| &stream.repository.watched() == repository);
    let mut failures = 0;
    for scheduled in own.flat_map(|stream| scheduled(&stream)) {
        let Scheduled { place, tag, from, image, known } = scheduled;
        match registry.look_up(&image, known.as_ref()).await {
            Ok(found) => {
                let imported = Imported { digest: found.digest.clone(), etag: found.etag };
                let image = image.at(&found.digest);
                let is_new = driver.decide(|it| tag::import(it, &place, (&tag, &from), &image, &imported)).await?;
                if is_new {
                    tracing::info!(%repository, stream = place.key.name, tag, image, "a tag leads to another image");
                }
            }
            Err(failure) => {
                failures += 1;
                let problem = failure.one_line();
                tracing::warn!(%repository, stream = place.key.name, tag, problem, "cannot look up the image of a tag");
            }
        }
    }
    Ok(failures)
}

/// The tags of a stream that ask for it. A launchable is in no registry.
fn scheduled(stream: &ObjectState) -> Vec<Scheduled> {
    if stream.destination.is_local() {
        return Vec::new();
    }
    let spec: ImageStreamSpec = stream.object.spec().unwrap_or_default();
    let asks = spec.tags.into_iter().filter(|tag| tag.import_policy.scheduled);
    let scheduled = asks.filter_map(|tag| {
        let from = tag.from.filter(|from| from.kind == DOCKER_IMAGE)?;
        let image = ImageName::parse(&from.name)?;
        let imported = stream.tagged.get(&tag.name).and_then(|tagged| tagged.imported.clone());
        let known = imported.map(|imported| Known { digest: imported.digest, etag: imported.etag });
        Some(Scheduled { place: stream.into(), tag: tag.name, from, image, known })
    });
    scheduled.collect()
}
