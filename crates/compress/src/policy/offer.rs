//! Limits that a request sets to its response's compression.

use super::facts::has_directive;
use super::{Link, Verdict, agent_is_broken, forbids_transform};
use crate::accept::{self, Admission};
use crate::coding::Coding;
use crate::dictionary::learning::Asked;
use crate::dictionary::{self, Offered};
use crate::etag::Form;
use crate::reason::Reason;
use crate::settings::Effective;
use terse_message::{Known, Request, Response, Version};

/// Facts of a request for the decision about its response; the request itself may be edited or gone by then.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The coding that the client would get, or the reason why it gets none.
    pub want: Result<Coding, Reason>,
    /// The version that the client speaks.
    pub version: Version,
    /// Whether some response to another request might be compressed: the client's copy may be a representation of ours.
    pub(crate) may_hold_ours: bool,
    /// Whether the client takes every coding that it may hold of ours.
    pub(crate) takes_all: bool,
    /// Its weights of all codings; `None` where it gets none.
    admission: Option<Admission>,
    /// Whether the resource is compressed for some client; `None` where that is not known before its response.
    pub(crate) is_coded_for_some: Option<bool>,
    pub(crate) method: Method,
    /// Whether the request came through another proxy.
    pub(crate) proxied: bool,
    pub(crate) authorized: bool,
    /// Whether it asks for a part under If-Range: its response has no more fields of the resource than it must (RFC 9110
    /// section 15.3.7).
    pub(crate) has_if_range: bool,
    /// If-None-Match as the client sent it, for the fields of a 304.
    pub(crate) if_none_match: Option<Box<[u8]>>,
    /// What it says of dictionaries; nothing where there are none.
    dictionary: Option<Box<Offered>>,
}

/// Methods, as far as compression cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    Get,
    Head,
    Connect,
    /// Any other. The ETag of an answer to it names the method's result on the resource, not the answer's own body.
    Other,
}

impl Method {
    pub(crate) fn of(request: &Request) -> Method {
        match request.method() {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        }
    }
}

impl Method {
    /// Whether the answer's body is a representation that its ETag names (RFC 9110 section 8.8).
    pub(crate) fn reads(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

impl Offer {
    /// The coding that changes bytes, if the client would get one.
    pub fn coded(&self) -> Option<Coding> {
        let with_dictionary = self.dictionary().and_then(Offered::dictionary).map(|_| Coding::Dcz);
        with_dictionary.or(self.want.ok().filter(|coding| !coding.is_identity()))
    }

    /// What it says of dictionaries; nothing where there are none.
    pub fn dictionary(&self) -> Option<&Offered> {
        self.dictionary.as_deref()
    }

    /// Whether the choice of an answer hangs on the client's dictionary.
    pub(crate) fn reads_dictionaries(&self) -> bool {
        self.dictionary().is_some_and(Offered::varies)
    }

    /// What a body is for this client in that coding.
    pub(crate) fn form(&self, coding: Coding) -> Form {
        let dictionary = self.dictionary().and_then(Offered::dictionary).filter(|_| coding.has_dictionary());
        Form { coding, dictionary: dictionary.map(|dictionary| dictionary.hash().short()) }
    }

    /// Whether the client can use a representation of ours of that form: of what was made with a dictionary, if it has that one.
    pub(crate) fn takes(&self, form: Form) -> bool {
        let coding = form.coding;
        coding.is_identity()
            || self.form(coding) == form && self.admission.as_ref().is_some_and(|admission| admission.admits(coding))
    }

    /// Records whether the response to GET, which is here already, is compressed for some client: for the fields of its 304.
    pub fn know(&mut self, verdict: &Verdict) {
        self.is_coded_for_some = Some(verdict.varies);
    }

    /// Whether a response to it is for a single user: its Cache-Control has `private` or `no-store`, it sets a cookie, or the
    /// request carried credentials (RFC 9111 sections 3.5 and 5.2.2, 7.3). The time of such a response must not reveal to
    /// another user whether it had been sent before. To be asked before cookies of ours are added.
    pub fn is_private(&self, response: &Response) -> bool {
        let fields = &response.fields;
        self.authorized || fields.has(Known::SetCookie) || has_directive(fields, b"private") || has_directive(fields, b"no-store")
    }
}

/// Reads a request before it is edited for the server, when frontend and backend are known. `asked`: what the client asked for, where
/// dictionaries are learned; `link`: the hop toward it.
pub fn offer(request: &Request, asked: Option<&Asked>, link: Link, settings: &Effective<'_>) -> Offer {
    let fields = &request.fields;
    let acceptance = accept::negotiate(fields.every(Known::AcceptEncoding), settings.response_codings());
    let configured = configured(settings);
    let allowed = configured.and_then(|()| client_allows(request, link, settings));
    let may_hold_ours = configured.is_ok() && settings.response_codings().iter().any(|coding| !coding.is_identity());
    let read = |line| dictionary::read(request, asked, line, link.is_secure, &acceptance.admission, acceptance.choice.ok());
    let dictionary = settings.dictionary().filter(|_| may_hold_ours).map(|line| match allowed {
        Ok(()) => Box::new(read(line)),
        Err(_) => Box::new(read(line).declined()),
    });
    Offer {
        want: allowed.and(acceptance.choice),
        version: request.version,
        may_hold_ours,
        // Without marks in tags nobody knows which dictionary was used.
        takes_all: acceptance.takes_all && !dictionary.as_deref().is_some_and(Offered::varies),
        admission: allowed.is_ok().then_some(acceptance.admission),
        is_coded_for_some: None,
        method: Method::of(request),
        proxied: fields.has(Known::Via),
        authorized: fields.has(Known::Authorization),
        has_if_range: fields.has(Known::IfRange),
        if_none_match: may_hold_ours.then(|| joined(fields.every(Known::IfNoneMatch))).flatten(),
        dictionary,
    }
}

/// Whether responses are compressed at all.
fn configured(settings: &Effective<'_>) -> Result<(), Reason> {
    if !settings.is_configured() {
        Err(Reason::NotConfigured)
    } else if !settings.directions().response {
        Err(Reason::Direction)
    } else if settings.response_codings().is_empty() {
        Err(Reason::NoAlgorithm)
    } else {
        Ok(())
    }
}

/// The client's obstacles, beside Accept-Encoding.
fn client_allows(request: &Request, link: Link, settings: &Effective<'_>) -> Result<(), Reason> {
    link.may_code()?;
    if request.version < settings.http_version() {
        Err(Reason::ClientVersion)
    } else if request.fields.first(Known::UserAgent).is_some_and(|agent| agent_is_broken(agent, settings)) {
        Err(Reason::Agent)
    } else if forbids_transform(&request.fields) {
        Err(Reason::RequestNoTransform)
    } else {
        Ok(())
    }
}

fn joined<'v>(values: impl Iterator<Item = &'v [u8]>) -> Option<Box<[u8]>> {
    let all: Vec<&[u8]> = values.collect();
    (!all.is_empty()).then(|| all.join(&b", "[..]).into_boxed_slice())
}
