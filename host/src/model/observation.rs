//! What a guest learned of the files it was shown, as typed steps: a result that rests on these is as good as new for
//! as long as each of them still holds.

use super::{Bytes, Context, Digest, Encoder, Mount};
use serde::{Deserialize, Serialize};

/// One thing that was learned of one place. In the derived order, which is by place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    /// On which mount.
    pub mount: Mount,
    /// Relative to it, as the guest sees it; empty for the mount itself.
    pub path: String,
    /// What was learned.
    pub step: Step,
}

/// What can be learned of a place. Each says what it says of the granted view, in which what was not granted is absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Nothing has this name, in a folder that is there.
    Absent,
    /// The name is a folder's, or a submodule's, which looks like one.
    Directory,
    /// The name is a file's.
    File,
    /// The name is a link's, with this text.
    Link(Bytes),
    /// A file has so many bytes.
    Size(u64),
    /// A file has these contents: a digest or an id of them, with the name of its algorithm.
    Contents(String),
    /// A folder holds exactly these names, each of its kind; hashed, in their order.
    Listing(Digest),
}

impl Step {
    fn code(&self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Directory => 1,
            Self::File => 2,
            Self::Link(_) => 3,
            Self::Size(_) => 4,
            Self::Contents(_) => 5,
            Self::Listing(_) => 6,
        }
    }
}

/// The digest of what was observed: sorted by place, each once.
pub fn observations_digest(observations: &[Observation]) -> Digest {
    let mut encoder = Encoder::new();
    encoder.integer(observations.len() as u64);
    for Observation { mount, path, step } in observations {
        encoder.text(mount.name()).text(path).integer(step.code());
        match step {
            Step::Absent | Step::Directory | Step::File => {}
            Step::Link(text) => {
                encoder.bytes(&text.0);
            }
            Step::Size(size) => {
                encoder.integer(*size);
            }
            Step::Contents(identity) => {
                encoder.text(identity);
            }
            Step::Listing(digest) => {
                encoder.digest(digest);
            }
        }
    }
    encoder.finish(Context::Observations)
}
