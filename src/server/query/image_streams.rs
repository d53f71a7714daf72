//! Tags of image streams.

use super::{Query, Selection};
use crate::model::object::Kind;
use crate::server::problem::Answer;
use crate::server::view::{ImageTagView, List};

impl Query {
    /// The tags of the chosen image streams.
    pub async fn image_streams(&self, selection: &Selection) -> Answer<List<ImageTagView>> {
        self.check(selection).await?;
        let project = selection.project.as_deref().map(Into::into);
        let stage = selection.stage.as_deref().map(Into::into);
        let states = self.store.objects(project.as_ref(), stage.as_ref(), Some(&Kind::ImageStream)).await?;
        // Tags may lead to streams that are not chosen.
        let found: Vec<_> = states.found.into_iter().map(|state| state.value).collect();
        let mut tags = ImageTagView::all(&found);
        tags.retain(|tag| {
            selection.takes(selection.repository.as_ref(), &tag.repository)
                && selection.takes(selection.name.as_ref(), &tag.stream)
        });
        Ok(tags.into_iter().collect::<List<_>>().beside(&states.damaged))
    }
}
