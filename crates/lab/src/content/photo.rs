//! A photograph of sorts: a picture with grain, as a baseline JPEG. It is compressed already; gzip would only cost time.

use super::picture::Picture;
use super::rng::Rng;

/// The photo of a seed: some 300 KB that a browser shows.
pub fn photo(seed: u64) -> Vec<u8> {
    let mut picture = Picture::city(seed, WIDTH, HEIGHT);
    let mut rng = Rng::new(seed);
    for value in &mut picture.rgb {
        *value = value.saturating_add(rng.below(GRAIN) as u8);
    }
    let mut jpeg = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut jpeg, QUALITY);
    // The picture has the given size, and a vector takes any amount: nothing here can fail.
    let encoded = encoder.encode(&picture.rgb, WIDTH as u16, HEIGHT as u16, jpeg_encoder::ColorType::Rgb);
    debug_assert!(encoded.is_ok());
    jpeg
}

const WIDTH: usize = 1200;
const HEIGHT: usize = 800;
const QUALITY: u8 = 80;
const GRAIN: usize = 12;
