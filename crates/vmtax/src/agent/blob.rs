//! Bytes in JSON.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes, written in base 64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Blob, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Blob).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back_and_other_texts_do_not() {
        let bytes = Blob((0..=255).collect());
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(serde_json::from_str::<Blob>(&text).unwrap(), bytes);
        assert!(serde_json::from_str::<Blob>("\"*\"").is_err());
    }
}
