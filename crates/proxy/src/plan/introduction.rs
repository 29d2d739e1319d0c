//! Preparation of a server before the first connection to it: the TLS connector, and the texts that each connection begins
//! with.

use crate::log::FormatText;
use crate::settings::Mode;
use std::borrow::Cow;
use std::sync::Arc;
use terse_balance::announcement::AnnouncedField;
use terse_balance::check::{Probe, ProbeKind};
use terse_balance::{Announcer, Manner, Server, ServerSettings};
use terse_compress::Mode as HopMode;
use terse_config::{Diagnostics, Place};
use terse_message::Protocol;
use terse_sample::LogFormat;
use terse_tls::settings::Policy;
use terse_tls::{Connector, ServerTls};

/// Settings of connections to a server.
#[derive(Debug)]
pub(super) struct Introduction {
    connector: Option<Arc<Connector>>,
    manner: Manner,
}

/// Settings of a backend that a server's introduction depends on.
pub(super) struct Surroundings<'a> {
    pub(super) probe: &'a Probe,
    pub(super) hop: HopMode,
    pub(super) mode: Mode,
    /// Place of the backend's section, or of the server's line.
    pub(super) place: &'a Place,
}

/// Makes contexts.
pub(super) type Secure<'a> = dyn Fn(&ServerTls, &mut Diagnostics) -> Option<Arc<Connector>> + 'a;

/// Compiles formats; faults are reported.
pub(super) type Compile<'a> = dyn FnMut(&FormatText, &mut Diagnostics) -> Option<LogFormat> + 'a;

/// Makes the introduction. Faults are reported.
pub(super) fn of(
    settings: &ServerSettings,
    backend: &Surroundings<'_>,
    secure: &Secure<'_>,
    compile: &mut Compile<'_>,
    diagnostics: &mut Diagnostics,
) -> Introduction {
    if settings.protocol.is_some() && backend.mode == Mode::Tcp {
        let reason = format!("MUX protocol is not usable for server '{}': 'proto' speaks of HTTP", settings.name);
        diagnostics.alert(backend.place, reason);
    }
    let connector = connector(settings, backend, secure, diagnostics);
    let may_be_secure = settings.tls.enabled || settings.tls.declined == Some(true);
    let name =
        name(settings, backend).filter(|_| may_be_secure && connector.is_some()).and_then(|text| compile(&text, diagnostics));
    let pool_name = settings.pool.name.as_ref().map(|(name, place)| expression(name, place));
    let pool_name = pool_name.and_then(|text| compile(&text, diagnostics));
    Introduction { connector, manner: Manner { announcer: announcer(settings, compile, diagnostics), name, pool_name } }
}

impl Introduction {
    /// Gives it to the server.
    pub(super) fn give(self, server: &Server) {
        if let Some(connector) = self.connector {
            server.secure(connector);
        }
        let Manner { announcer, name, pool_name } = &self.manner;
        if announcer.is_some() || name.is_some() || pool_name.is_some() {
            server.introduce(self.manner);
        }
    }
}

/// The TLS connector, where any connections are to be secure.
fn connector(
    settings: &ServerSettings,
    backend: &Surroundings<'_>,
    secure: &Secure<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Connector>> {
    let tls = &settings.tls;
    if !tls.enabled && tls.declined != Some(true) && tls.check != Some(true) && !backend.probe.uses_tls() {
        return None;
    }
    let offered = tls.check_alpn.iter().flatten().filter(|_| backend.probe.kind == ProbeKind::Http);
    for name in offered.filter(|name| !terse_tls::is_http_protocol(name)) {
        let reason = format!("server '{}': '{name}' is not spoken to servers: checks by HTTP do not offer it", settings.name);
        diagnostics.warn(backend.place, reason);
    }
    let mut tls = Cow::Borrowed(tls);
    if backend.mode == Mode::Http
        && let Some(name) = tls.alpn.iter().flatten().find(|name| !terse_tls::is_http_protocol(name))
    {
        if !tls.alpn.iter().flatten().any(|name| terse_tls::is_http_protocol(name)) {
            let reason = format!(
                "server '{}': 'alpn {name}': only HTTP/1 and HTTP/2 are spoken to servers: add 'h2,http/1.1' if it has them",
                settings.name
            );
            diagnostics.alert(backend.place, reason);
            return None;
        }
        let reason = format!("server '{}': '{name}' is not spoken to servers, so it is not offered to them", settings.name);
        diagnostics.warn(backend.place, reason);
        tls.to_mut().alpn.iter_mut().for_each(|names| names.retain(|name| terse_tls::is_http_protocol(name)));
    }
    if settings.protocol == Some(Protocol::Http2) && tls.alpn.is_none() {
        // Servers that speak both versions take a client without ALPN for HTTP/1.
        tls.to_mut().alpn = Some(vec![Protocol::Http2.alpn().into()]);
    }
    if backend.hop == HopMode::Off {
        tls.to_mut().common.records = Policy::Forbid;
    }
    secure(&tls, diagnostics)
}

/// The name that it is asked for by TLS.
fn name(settings: &ServerSettings, backend: &Surroundings<'_>) -> Option<FormatText> {
    let tls = &settings.tls;
    let auto = (!tls.no_sni_auto && backend.mode == Mode::Http).then_some((AUTOMATIC_NAME, backend.place));
    let (name, place) = tls.sni.as_ref().map(|sni| (&*sni.name, &sni.place)).or(auto)?;
    Some(expression(name, place))
}

fn expression(text: &str, place: &Place) -> FormatText {
    FormatText { text: format!("%[{text}]").into_bytes(), place: place.clone() }
}

/// HAProxy's: the host of the request.
const AUTOMATIC_NAME: &str = "req.hdr(host),host_only";

/// The settings of the PROXY header that the server gets.
fn announcer(settings: &ServerSettings, compile: &mut Compile<'_>, diagnostics: &mut Diagnostics) -> Option<Announcer> {
    let told = settings.announcement.clone();
    told.version?;
    let mut fields = Vec::new();
    for AnnouncedField { kind, format, place } in &told.fields {
        let text = FormatText { text: format.to_vec(), place: place.clone() };
        fields.extend(compile(&text, diagnostics).map(|format| (*kind, format)));
    }
    Some(Announcer { told, fields })
}
