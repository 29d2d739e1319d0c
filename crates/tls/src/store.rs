//! Certificates whose parts are named one by one: sections `crt-store`.

use crate::certificate::Sources;
use crate::settings::{FileName, Global};
use crate::vault::files::{Key, key};
use std::path::PathBuf;
use terse_config::{Section, Setting};

/// What a section says.
#[derive(Clone, Default, Debug)]
pub(crate) struct Store {
    /// `crt-base`: where relative names of certificates begin.
    pub(crate) crt_base: Option<PathBuf>,
    /// `key-base`: where those of keys begin.
    pub(crate) key_base: Option<PathBuf>,
    /// `load`, in order.
    pub(crate) loads: Vec<Load>,
}

impl Setting for Store {
    fn inherit(&self) -> Store {
        self.clone()
    }
}

/// A certificate, and where its parts are.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// `crt`
    pub(crate) certificate: FileName,
    /// `key`
    pub(crate) key: Option<FileName>,
    /// `ocsp`
    pub(crate) ocsp: Option<FileName>,
    /// `issuer`
    pub(crate) issuer: Option<FileName>,
    /// `sctl`
    pub(crate) timestamps: Option<FileName>,
    /// `alias`: what it is called by.
    pub(crate) alias: Option<String>,
    /// `ocsp-update`
    pub(crate) updates: Option<bool>,
}

/// The certificates of a section: what they are called by, where their parts are, and where they stand.
pub(crate) fn settle(mut section: Section, global: &Global) -> Vec<(Key, Sources, FileName, Option<bool>)> {
    let Store { crt_base, key_base, loads } = section.settings.take().unwrap_or_default();
    let crt_base = crt_base.as_deref().or(global.crt_base.as_deref());
    let key_base = key_base.as_deref().or(global.key_base.as_deref());
    let settled = |load: Load| {
        let name = match &load.alias {
            Some(alias) => format!("@{}/{alias}", section.name).into(),
            None if section.name.is_empty() => key(&load.certificate.path(global.crt_base.as_deref())),
            None => format!("@{}/{}", section.name, load.certificate.name.trim_start_matches('/')).into(),
        };
        let sources = Sources {
            certificate: Some(load.certificate.path(crt_base)),
            key: load.key.map(|file| file.path(key_base)),
            ocsp: load.ocsp.map(|file| file.path(crt_base)),
            issuer: load.issuer.map(|file| file.path(crt_base)),
            timestamps: load.timestamps.map(|file| file.path(crt_base)),
        };
        (name, sources, load.certificate, load.updates)
    };
    loads.into_iter().map(settled).collect()
}
