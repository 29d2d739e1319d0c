//! A cache shared by clients that take different codings. It keeps all variants and selects one as RFC 9111 section 4.1 requires
//! (by Vary). It revalidates all of them at once, and believes the 304 that names one (section 4.3.4).

use super::exchange::{Connection, coding, is_usable, is_version};
use super::origin::RESOURCES;
use super::support::client::Response;
use super::{ACCEPTED, Setting};
use std::collections::HashMap;
use std::net::SocketAddr;

/// A cache.
pub(crate) struct Cache {
    connection: Connection,
    stored: HashMap<usize, Vec<Variant>>,
}

/// A stored response.
#[derive(Clone, Debug)]
struct Variant {
    coding: Option<String>,
    tag: Option<String>,
    /// Accept-Encoding of the request that brought it, if the response depends on that.
    accepted: Option<&'static str>,
    version: usize,
}

impl Cache {
    pub(crate) fn new(address: SocketAddr) -> Cache {
        Cache { connection: Connection::new(address, ""), stored: HashMap::new() }
    }

    /// Serves a client.
    pub(crate) fn step(&mut self, setting: &mut Setting) {
        let resource = setting.random.below(RESOURCES / 3);
        let accepted = *setting.random.pick(&ACCEPTED);
        let version = setting.world.lock().unwrap().version(resource);
        let variants = self.stored.entry(resource).or_default();
        let matching = variants.iter().rev().find(|variant| variant.accepted.is_none_or(|before| before == accepted));
        if let Some(variant) = matching.filter(|_| setting.random.one_in(2)) {
            // It is taken for fresh, however old: but only by clients that can use it.
            setting.tell(format!("cache: '{accepted}' is given {resource} as it is stored: {variant:.0?}"));
            setting.demand(is_usable(accepted, variant.coding.as_deref()), "Vary lets it be given to who cannot use it");
            setting.count("cache: given");
            return;
        }
        let tags: Vec<String> = variants.iter().filter_map(|variant| variant.tag.clone()).collect();
        let fields = if tags.is_empty() { vec![] } else { vec![("If-None-Match", tags.join(", "))] };
        setting.tell(format!("cache: '{accepted}' asks for {resource}, now in version {version}, with {fields:?}"));
        self.connection.accepted = accepted;
        let response = self.connection.ask("GET", resource, &fields);
        setting.tell(format!("  {} {:?}", response.line, response.fields));
        if response.status == 304 {
            let Some(variant) = selected(variants, &response) else {
                setting.count("cache: nothing selected");
                return variants.clear();
            };
            setting.tell(format!("  selects {variant:.0?}"));
            setting.demand(variant.version == version, "a false 304");
            setting.demand(is_usable(accepted, variant.coding.as_deref()), "a 304 for what the client cannot use");
            setting.count("cache: selected");
            return;
        }
        setting.demand(response.status == 200, "a whole answer");
        let coding = coding(&response);
        setting.demand(is_usable(accepted, coding.as_deref()), "in a coding that the client takes");
        setting.demand(is_version(resource, version, coding.as_deref(), &response.body), "the current version");
        let varies = response.fields.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("vary") && value.split(',').any(|name| name.trim().eq_ignore_ascii_case("accept-encoding"))
        });
        let variant =
            Variant { coding, tag: response.field("etag").map(str::to_owned), accepted: varies.then_some(accepted), version };
        // A new response replaces the stored response to the same request.
        variants.retain(|stored| stored.accepted.is_some() && varies && stored.accepted != variant.accepted);
        variants.push(variant);
        setting.count("cache: stored");
    }
}

/// The stored response that a 304 is about: of those with its strong tag, or else of those with its weak one, the latest.
fn selected<'a>(variants: &'a [Variant], response: &Response) -> Option<&'a Variant> {
    let tag = response.field("etag")?;
    let same = |variant: &&Variant| match (tag.strip_prefix("W/"), variant.tag.as_deref()) {
        (None, Some(stored)) => stored == tag,
        (Some(opaque), Some(stored)) => stored.trim_start_matches("W/") == opaque,
        (_, None) => false,
    };
    variants.iter().rev().find(same)
}
