//! Layout of data in an entry's cells.

use super::data::{Data, KINDS, Shape};
use super::settings::Stored;

/// Places of all kinds of data in an entry's cells: the same for all entries of a table.
#[derive(Clone, Debug)]
pub struct Layout {
    places: [Option<Place>; KINDS],
    cells: usize,
}

/// The cells of one kind of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The first cell.
    pub(super) first: usize,
    /// Number of elements.
    pub(super) elements: u32,
    /// Period of rates.
    pub(super) period_ms: u32,
}

impl Layout {
    /// Layout of stored data. Of two of a kind the first counts.
    pub fn new(stored: &[Stored]) -> Layout {
        let mut layout = Layout { places: [None; KINDS], cells: 0 };
        for Stored { data, elements, period_ms } in stored.iter().copied() {
            let place = &mut layout.places[data as usize];
            if place.is_none() {
                *place = Some(Place { first: layout.cells, elements, period_ms });
                layout.cells += elements as usize * width(data);
            }
        }
        layout
    }

    /// Whether entries hold the kind of data.
    pub fn has(&self, data: Data) -> bool {
        self.places[data as usize].is_some()
    }

    /// Data that entries hold, in the order of dumps.
    pub fn stored(&self) -> impl Iterator<Item = Stored> + '_ {
        Data::ALL.into_iter().filter_map(|data| {
            let Place { elements, period_ms, .. } = self.places[data as usize]?;
            Some(Stored { data, elements, period_ms })
        })
    }

    /// Number of cells of an entry.
    pub(super) fn cells(&self) -> usize {
        self.cells
    }

    /// First cell of an element, and the period; `None` when it is not stored.
    #[inline]
    pub(super) fn find(&self, data: Data, element: u32) -> Option<(usize, u32)> {
        let place = self.places[data as usize]?;
        (element < place.elements).then(|| (place.first + element as usize * width(data), place.period_ms))
    }
}

/// Number of cells of an element.
const fn width(data: Data) -> usize {
    match data.shape() {
        Shape::Rate => 2,
        _ => 1,
    }
}
