//! Drafts of proxies for the plan: settings of their sections, numbers, places.

use crate::log::LogSettings;
use crate::settings::{ErrorSettings, ErrorSource, Mode, ProxySettings};
use crate::stick::StickSettings;
use std::collections::HashMap;
use std::sync::Arc;
use terse_balance::FarmSettings;
use terse_balance::table::{TableLine, TableSettings};
use terse_compress::Compression;
use terse_compress::Mode as HopMode;
use terse_compress::decode::Decompression;
use terse_config::{Diagnostics, Keyword, Place, Section, SectionKind};
use terse_sample::AclSet;

/// A proxy on its way.
pub(super) struct Draft {
    pub(super) kind: SectionKind,
    pub(super) name: Arc<str>,
    pub(super) place: Place,
    /// Its number in statistics.
    pub(super) id: u32,
    /// Its place among all proxies.
    pub(super) order: usize,
    /// The index of its front half among all frontends, unless it is disabled.
    pub(super) front: Option<usize>,
    /// The index of its back half among all backends, unless it is disabled.
    pub(super) back: Option<usize>,
    pub(super) proxy: ProxySettings,
    pub(super) farm: FarmSettings,
    pub(super) table: Option<TableSettings>,
    pub(super) stick: StickSettings,
    pub(super) log: LogSettings,
    pub(super) errors: Vec<ErrorSource>,
    pub(super) acls: AclSet,
    pub(super) compression: Option<Arc<Compression>>,
    pub(super) decompression: Option<Arc<Decompression>>,
    pub(super) hop: HopMode,
    /// Its own lines.
    pub(super) lines: Vec<(&'static Keyword, Place)>,
    /// Whether any of its lines, or of its defaults, was refused.
    pub(super) doubtful: bool,
}

/// The proxies of a configuration, in order.
pub(super) fn of(sections: Vec<Section>, diagnostics: &mut Diagnostics) -> Vec<Draft> {
    let mut drafts = Vec::with_capacity(sections.len());
    let (mut fronts, mut backs) = (0, 0);
    for section in sections {
        if !section.kind.is_front() && !section.kind.is_back() {
            continue;
        }
        let mut draft = Draft::new(section, drafts.len());
        let is_used = !draft.proxy.disabled;
        draft.front = (draft.kind.is_front() && is_used).then_some(fronts);
        draft.back = (draft.kind.is_back() && is_used).then_some(backs);
        fronts += usize::from(draft.front.is_some());
        backs += usize::from(draft.back.is_some());
        drafts.push(draft);
    }
    number(&mut drafts, diagnostics);
    drafts
}

/// Gives each proxy its number: its own, or the next free number. HAProxy begins with 2, and programs rely on it.
fn number(drafts: &mut [Draft], diagnostics: &mut Diagnostics) {
    let mut used: HashMap<u32, usize> = HashMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        let Some(id) = draft.proxy.id else { continue };
        if let Some(other) = used.insert(id, index).and_then(|other| drafts.get(other)) {
            let at = format!("{}:{}", other.place.file, other.place.line);
            let reason = format!("{} reuses same custom id as {} (declared at {at})", draft.label(), other.label());
            diagnostics.alert(&draft.place, reason);
        }
    }
    let mut free = (2..).filter(|id| !used.contains_key(id));
    for draft in drafts {
        draft.id = draft.proxy.id.or_else(|| free.next()).unwrap_or_default();
    }
}

impl Draft {
    /// The settings of a section, before it has a number and its places.
    pub(super) fn new(section: Section, order: usize) -> Draft {
        let Section { kind, name, place, mut settings, lines, doubtful } = section;
        Draft {
            kind,
            name,
            place,
            id: 0,
            order,
            front: None,
            back: None,
            proxy: settings.take().unwrap_or_default(),
            farm: settings.take().unwrap_or_default(),
            table: settings.take::<TableLine>().and_then(|line| line.0),
            stick: settings.take().unwrap_or_default(),
            log: settings.take().unwrap_or_default(),
            errors: settings.take::<ErrorSettings>().unwrap_or_default().sources,
            acls: settings.take().unwrap_or_default(),
            compression: settings.take().map(Compression::settled).map(Arc::new),
            decompression: settings.take().map(Arc::new),
            hop: settings.take().unwrap_or_default(),
            lines,
            doubtful,
        }
    }

    /// Its name in messages: `frontend 'f'`, `proxy 'l'`.
    pub(super) fn label(&self) -> String {
        format!("{} '{}'", self.noun(), self.name)
    }

    /// The same, with its place.
    pub(super) fn label_at(&self) -> String {
        format!("{} ({}:{})", self.label(), self.place.file, self.place.line)
    }

    /// The name of its kind in HAProxy's messages.
    pub(super) fn noun(&self) -> &'static str {
        match self.kind {
            SectionKind::Listen => "proxy",
            kind => kind.name(),
        }
    }

    /// Whether it carries requests and responses.
    pub(super) fn is_http(&self) -> bool {
        self.proxy.mode == Mode::Http
    }

    /// The name of its mode in messages.
    pub(super) fn mode(&self) -> &'static str {
        match self.proxy.mode {
            Mode::Http => "http",
            Mode::Tcp => "tcp",
            Mode::Log => "log",
        }
    }
}
