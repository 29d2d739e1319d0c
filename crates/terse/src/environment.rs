//! Facts about this process that configurations may ask for.

use crate::args::Arguments;
use crate::master::lifeline;
use crate::version;
use std::collections::HashMap;
use terse_config::{Environment, Source, TlsLibrary};

/// The variable that holds this peer's name: `-L`, `localpeer`, or the host's name.
pub const LOCAL_PEER: &str = "HAPROXY_LOCALPEER";

/// Returns the facts that files and conditions may ask for: environment variables and those that HAProxy's manual promises (section
/// 2.4). The others are the version of the language, features, and the options that the command line has left enabled.
pub fn environment(arguments: &Arguments, sources: &[Source]) -> Environment {
    let mut variables: HashMap<String, String> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    let files: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let mut promise = |name: &str, value: &str| drop(variables.insert(name.to_owned(), value.to_owned()));
    promise(LOCAL_PEER, &arguments.localpeer.clone().unwrap_or_else(host_name));
    promise("HAPROXY_CFGFILES", &files.join(";"));
    promise("HAPROXY_BRANCH", version::branch());
    promise("HAPROXY_STARTUP_VERSION", version::LANGUAGE);
    if std::env::var_os(lifeline::VARIABLE).is_some() {
        promise("HAPROXY_MWORKER", "1");
    }
    let mut enabled = vec!["EPOLL", "GETADDRINFO"];
    enabled.extend((!arguments.no_reuseport).then_some("REUSEPORT"));
    enabled.extend((!arguments.no_splice).then_some("SPLICE"));
    enabled.extend((!arguments.no_fast_forward).then_some("FAST-FORWARD"));
    Environment {
        variables,
        version: version::LANGUAGE.to_owned(),
        features: version::features().map(str::to_owned).collect(),
        enabled: enabled.into_iter().map(str::to_owned).collect(),
        tls: Some(tls_library()),
        diagnostic: arguments.diagnostic,
    }
}

fn tls_library() -> TlsLibrary {
    let (name, version) = terse_tls::library();
    TlsLibrary { name: name.to_owned(), version, fips: false, awslc_api: None }
}

/// The host's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
