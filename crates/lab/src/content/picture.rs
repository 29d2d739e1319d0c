//! A drawn picture: a city by a river at night, and its form as a bitmap.
//!
//! The founding document sent a bitmap of 7.3 MB through nginx at level 9 and got 182.3 KB. Flat sky, rows that repeat and lit
//! windows that do not give the same proportion: the number of lamps, stars and ripples below was tuned until zlib's level 9
//! came out there.

use super::rng::Rng;
use super::{STAMP_BYTES, Template};

/// Pixels in rows from the top, three bytes each: red, green, blue.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// `width * height * 3` bytes.
    pub rgb: Vec<u8>,
}

type Colour = [u8; 3];

impl Picture {
    /// The city of a seed.
    pub fn city(seed: u64, width: usize, height: usize) -> Picture {
        let mut picture = Picture { width, height, rgb: vec![0; width * height * 3] };
        let mut rng = Rng::new(seed);
        let shore = height * 3 / 4;
        picture.sky(&mut rng, shore);
        picture.moon(&mut rng, shore);
        for (row, dark) in [(0.35, 44), (0.5, 30), (0.68, 18)] {
            picture.buildings(&mut rng, shore, (shore as f64 * row) as usize, dark);
        }
        picture.river(&mut rng, shore);
        picture
    }

    /// The picture as a bitmap of 24 bits a pixel, rows from the bottom, with a stamp in about every `stamp_every` bytes.
    pub fn bitmap(&self, stamp_every: usize) -> Template {
        let row_bytes = (self.width * 3).next_multiple_of(4);
        let total = HEAD_BYTES + row_bytes * self.height;
        let mut bytes = Vec::with_capacity(total);
        bytes.extend_from_slice(b"BM");
        for field in [total, 0, HEAD_BYTES, 40, self.width, self.height, 24 << 16 | 1, 0, row_bytes * self.height, 2835, 2835, 0, 0]
        {
            bytes.extend_from_slice(&(field as u32).to_le_bytes());
        }
        for (i, row) in self.rgb.rchunks_exact(self.width * 3).enumerate() {
            bytes.extend(row.chunks_exact(3).flat_map(|p| [p[2], p[1], p[0]]));
            bytes.resize(HEAD_BYTES + row_bytes * (i + 1), 0);
        }
        let stamps = (HEAD_BYTES..total - STAMP_BYTES).step_by(stamp_every.max(STAMP_BYTES)).collect();
        Template { bytes, stamps }
    }

    fn sky(&mut self, rng: &mut Rng, shore: usize) {
        for y in 0..shore {
            let glow = (y * 60 / shore) as u8;
            self.fill(0, y, self.width, 1, [8 + glow / 2, 12 + glow / 2, 40 + glow]);
        }
        for _ in 0..self.width * self.height / STAR_EVERY_PIXELS {
            let (x, y, light) = (rng.below(self.width), rng.below(shore), 120 + rng.below(136) as u8);
            self.fill(x, y, 1, 1, [light, light, light]);
        }
    }

    fn moon(&mut self, rng: &mut Rng, shore: usize) {
        let radius = (shore / 9) as isize;
        let (cx, cy) = ((self.width * 3 / 4) as isize, (shore / 4) as isize);
        self.disc(cx, cy, radius, [238, 232, 205]);
        for _ in 0..14 {
            let (dx, dy) = (rng.below(radius as usize) as isize - radius / 2, rng.below(radius as usize) as isize - radius / 2);
            self.disc(cx + dx, cy + dy, 2 + rng.below(radius as usize / 6 + 1) as isize, [221, 213, 184]);
        }
    }

    /// A row of houses from the left edge to the right one; some windows are lit.
    fn buildings(&mut self, rng: &mut Rng, shore: usize, tallest: usize, dark: u8) {
        let mut x = 0;
        while x < self.width {
            let wide = self.width / 40 + rng.below(self.width / 20);
            let top = shore - tallest / 3 - rng.below(tallest * 2 / 3 + 1);
            let tint = rng.below(12) as u8;
            self.fill(x, top, wide, shore - top, [dark + tint / 2, dark + tint / 3, dark + tint]);
            let (pane_x, pane_y) = (5 + rng.below(4), 6 + rng.below(6));
            let lit = 15 + rng.below(50);
            let mut y = top + pane_y;
            while y + pane_y < shore {
                let mut pane = x + pane_x;
                while pane + pane_x < x + wide {
                    if rng.percent(lit) {
                        let [red, green, blue] = LAMPS[rng.below(LAMPS.len())];
                        let dim = rng.below(48) as u8;
                        let colour = [red - dim, green - dim, blue - dim];
                        self.fill(pane, y, pane_x - 2, pane_y - 2, colour);
                    }
                    pane += pane_x * 2 - 2;
                }
                y += pane_y * 2 - 3;
            }
            x += wide + rng.below(8);
        }
    }

    /// The mirror image of the part above the shore, each strip of rows shifted by a ripple.
    fn river(&mut self, rng: &mut Rng, shore: usize) {
        let row_bytes = self.width * 3;
        let mut shift = 0isize;
        for y in shore..self.height {
            if (y - shore).is_multiple_of(RIPPLE_ROWS) {
                shift = (shift + rng.below(7) as isize - 3).clamp(-12, 12);
            }
            let depth = (y - shore) / RIPPLE_ROWS * RIPPLE_ROWS;
            let mirrored = shore.saturating_sub(1 + depth * 2) * row_bytes;
            let mut row = self.rgb[mirrored..mirrored + row_bytes].to_vec();
            row.rotate_right((shift * 3).rem_euclid(row_bytes as isize) as usize);
            for pixel in row.chunks_exact_mut(3) {
                pixel.copy_from_slice(&[pixel[0] / 4 * 2, pixel[1] / 4 * 2 + 4, pixel[2] / 4 * 3 + 10]);
            }
            self.rgb[y * row_bytes..(y + 1) * row_bytes].copy_from_slice(&row);
        }
        for _ in 0..self.width * (self.height - shore) / GLINT_EVERY_PIXELS {
            let (x, y, light) = (rng.below(self.width), shore + rng.below(self.height - shore), 40 + rng.below(120) as u8);
            self.fill(x, y, 2 + rng.below(5), 1, [light / 4 * 3, light / 4 * 3, light]);
        }
    }

    fn disc(&mut self, cx: isize, cy: isize, radius: isize, colour: Colour) {
        for dy in -radius..=radius {
            let half = ((radius * radius - dy * dy) as f64).sqrt() as isize;
            if let (Ok(x), Ok(y)) = (usize::try_from(cx - half), usize::try_from(cy + dy)) {
                self.fill(x, y, 2 * half as usize + 1, 1, colour);
            }
        }
    }

    /// A rectangle, cut at the edges.
    fn fill(&mut self, x: usize, y: usize, wide: usize, high: usize, colour: Colour) {
        let end = (x + wide).min(self.width);
        for y in y..(y + high).min(self.height) {
            let row = y * self.width;
            for pixel in self.rgb[(row + x.min(end)) * 3..(row + end) * 3].chunks_exact_mut(3) {
                pixel.copy_from_slice(&colour);
            }
        }
    }
}

/// File head and information head of a bitmap.
const HEAD_BYTES: usize = 54;

/// See the head of this file.
const STAR_EVERY_PIXELS: usize = 90;

/// See the head of this file.
const GLINT_EVERY_PIXELS: usize = 62;

/// See the head of this file.
const RIPPLE_ROWS: usize = 4;

const LAMPS: [Colour; 6] = [[250, 220, 130], [255, 236, 170], [236, 190, 96], [205, 214, 232], [250, 220, 130], [168, 122, 70]];
