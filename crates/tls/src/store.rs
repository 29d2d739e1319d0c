//! Certificates whose parts are named one by one: sections `crt-store`.

use crate::certificate::Sources;
use crate::settings::{FileName, Global};
use crate::vault::files::{Key, key};
use std::path::{Path, PathBuf};
use terse_config::{Section, Setting};

/// Content of a section.
#[derive(Clone, Default, Debug)]
pub(crate) struct Store {
    /// `crt-base`: folder for relative names of certificates.
    pub(crate) crt_base: Option<PathBuf>,
    /// `key-base`: folder for relative names of keys.
    pub(crate) key_base: Option<PathBuf>,
    /// `load`, in order.
    pub(crate) loads: Vec<Load>,
}

impl Setting for Store {
    fn inherit(&self) -> Store {
        self.clone()
    }
}

/// A certificate, and the files of its parts.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// `crt`
    pub(crate) certificate: FileName,
    /// The other parts.
    pub(crate) parts: Parts,
    /// `alias`: the name that it is called by.
    pub(crate) alias: Option<String>,
    /// `ocsp-update`
    pub(crate) updates: Option<bool>,
    /// `jwt`: it verifies and decrypts tokens.
    pub(crate) for_tokens: bool,
}

/// A certificate of a section, once its names are complete.
pub(crate) struct Settled {
    /// The name that it is called by.
    pub(crate) name: Key,
    /// The files of its parts.
    pub(crate) sources: Sources,
    /// Its `load` line.
    pub(crate) load: Load,
}

/// Files of the parts of a certificate that are not in its own file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Parts {
    /// `key`
    pub(crate) key: Option<FileName>,
    /// `ocsp`
    pub(crate) ocsp: Option<FileName>,
    /// `issuer`
    pub(crate) issuer: Option<FileName>,
    /// `sctl`
    pub(crate) timestamps: Option<FileName>,
}

impl Parts {
    /// Whether no part is named.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Parts::default()
    }

    /// The files, with that of the certificate itself.
    pub(crate) fn sources(&self, certificate: PathBuf, crt_base: Option<&Path>, key_base: Option<&Path>) -> Sources {
        let path = |file: &Option<FileName>, base: Option<&Path>| file.as_ref().map(|file| file.path(base));
        Sources {
            certificate: Some(certificate),
            key: path(&self.key, key_base),
            ocsp: path(&self.ocsp, crt_base),
            issuer: path(&self.issuer, crt_base),
            timestamps: path(&self.timestamps, crt_base),
        }
    }
}

/// The certificates of a section.
pub(crate) fn settle(mut section: Section, global: &Global) -> Vec<Settled> {
    let Store { crt_base, key_base, loads } = section.settings.take().unwrap_or_default();
    let crt_base = crt_base.as_deref().or(global.crt_base.as_deref());
    let key_base = key_base.as_deref().or(global.key_base.as_deref());
    let settled = |load: Load| {
        let name = match &load.alias {
            Some(alias) => format!("@{}/{alias}", section.name).into(),
            None if section.name.is_empty() => key(&load.certificate.path(global.crt_base.as_deref())),
            None => format!("@{}/{}", section.name, load.certificate.name.trim_start_matches('/')).into(),
        };
        let sources = load.parts.sources(load.certificate.path(crt_base), crt_base, key_base);
        Settled { name, sources, load }
    };
    loads.into_iter().map(settled).collect()
}
