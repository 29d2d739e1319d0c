//! A line of `show stat`.

use super::{Column, Figure};

/// Subject of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A frontend.
    Frontend,
    /// A backend.
    Backend,
    /// A server.
    Server,
    /// An address that a frontend listens on.
    Address,
}

/// The figures of a proxy's half, a server or an address.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Subject.
    pub(crate) kind: Kind,
    /// Number of the proxy.
    pub(crate) proxy: u32,
    /// Number of the server or the address; 0 for a proxy's half.
    pub(crate) id: u32,
    cells: Vec<Option<Figure>>,
}

impl Row {
    /// A row with its subject and no other figure.
    pub(crate) fn new(kind: Kind, proxy: u32, id: u32) -> Row {
        let mut row = Row { kind, proxy, id, cells: vec![None; Column::ALL.len()] };
        row.set(Column::Process, Figure::small("KGPV", 1));
        row.set(Column::ProxyId, Figure::small("KGSV", proxy));
        row.set(Column::ServiceId, Figure::small("KGSV", id));
        row.set(Column::Type, Figure::small("CGSV", kind.number()));
        row
    }

    /// Sets a cell.
    pub(crate) fn set(&mut self, column: Column, figure: Figure) {
        self.cells[column as usize] = Some(figure);
    }

    /// Figure in a column.
    pub(crate) fn get(&self, column: Column) -> Option<&Figure> {
        self.cells[column as usize].as_ref()
    }

    /// Columns with their figures; an unknown figure is `None`.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (Column, Option<&Figure>)> {
        Column::ALL.iter().copied().zip(self.cells.iter().map(Option::as_ref))
    }
}

impl Kind {
    /// Number in the column `type`; two to the power of it selects it in `show stat`.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Kind::Frontend => 0,
            Kind::Backend => 1,
            Kind::Server => 2,
            Kind::Address => 3,
        }
    }

    /// Letter in typed lines.
    pub(crate) const fn letter(self) -> char {
        match self {
            Kind::Frontend => 'F',
            Kind::Backend => 'B',
            Kind::Server => 'S',
            Kind::Address => 'L',
        }
    }

    /// Name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Frontend => "Frontend",
            Kind::Backend => "Backend",
            Kind::Server => "Server",
            Kind::Address => "Listener",
        }
    }
}
