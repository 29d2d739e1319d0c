//! `cookie`, `option persist`.

use super::{done, in_back, set, settings, switch};
use crate::persistence::{CookieMode, CookieSettings, Terms};
use terse_config::{Args, Fault, Keyword, TimeUnit};
use terse_message::name::is_token;

pub(super) const COOKIE: Keyword = done(
    "cookie",
    "<name> [rewrite | insert | prefix] [indirect] [nocache] [postonly] [preserve] [dynamic] [httponly] [secure] [domain <domain>]* \
     [maxidle <time>] [maxlife <time>] [attr <attribute>]*",
    "Brings a client back to its server by a cookie.",
    |args, scope| {
        let cookie = cookie(args)?;
        if in_back(scope) {
            settings(scope).cookie = Some(cookie);
        }
        Ok(())
    },
);

pub(super) const DYNAMIC_COOKIE_KEY: Keyword =
    done("dynamic-cookie-key", "<key>", "The secret from which 'cookie ... dynamic' makes servers' values.", |args, scope| {
        let key = args.need("<key>")?.into();
        if in_back(scope) {
            settings(scope).cookie_key = Some(key);
        }
        Ok(())
    });

pub(super) const PERSIST: Keyword =
    switch("option persist", "A request goes to its cookie's server even when that is down.", |args, scope| {
        set(args, scope, |farm| &mut farm.persist)
    });

fn cookie(args: &mut Args<'_>) -> Result<CookieSettings, Fault> {
    let name = args.need("<name>")?;
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(args.fault(format!("'{name}' cannot be a cookie's name")));
    }
    let mut cookie = CookieSettings {
        name: name.into(),
        mode: CookieMode::Passive,
        indirect: false,
        nocache: false,
        postonly: false,
        preserve: false,
        dynamic: false,
        terms: Terms::default(),
        attributes: "".into(),
    };
    let (mut modes, mut http_only, mut secure) = (0, "", "");
    let (mut domains, mut others) = (String::new(), String::new());
    while let Some(word) = args.take() {
        let mode = match word {
            "rewrite" => Some(CookieMode::Rewrite),
            "insert" => Some(CookieMode::Insert),
            "prefix" => Some(CookieMode::Prefix),
            _ => None,
        };
        match (mode, word) {
            (Some(mode), _) => (cookie.mode, modes) = (mode, modes + 1),
            (_, "indirect") => cookie.indirect = true,
            (_, "nocache") => cookie.nocache = true,
            (_, "postonly") => cookie.postonly = true,
            (_, "preserve") => cookie.preserve = true,
            (_, "httponly") => http_only = "; HttpOnly",
            (_, "dynamic") => cookie.dynamic = true,
            (_, "secure") => secure = "; Secure",
            (_, "domain") => domains.push_str(&format!("; domain={}", attribute(args, "<domain>")?)),
            (_, "attr") => others.push_str(&format!("; {}", attribute(args, "<attribute>")?)),
            (_, "maxidle") => cookie.terms.idle_s = term(args)?,
            (_, "maxlife") => cookie.terms.life_s = term(args)?,
            _ => {
                let known = "known are rewrite, insert, prefix, indirect, nocache, postonly, preserve, dynamic, httponly, secure, domain, maxidle, maxlife, attr";
                return Err(args.fault(format!("unknown word '{word}'")).hint(known));
            }
        }
    }
    if modes > 1 {
        return Err(args.fault("only one of 'rewrite', 'insert' and 'prefix' may be given"));
    }
    if cookie.mode == CookieMode::Rewrite && cookie.indirect {
        return Err(args.fault("'rewrite' and 'indirect' cannot go together"));
    }
    if cookie.preserve && cookie.mode != CookieMode::Insert && !cookie.indirect {
        return Err(args.fault("'preserve' requires 'insert' or 'indirect'"));
    }
    cookie.attributes = format!("{domains}{http_only}{secure}{others}").into();
    Ok(cookie)
}

/// A time in seconds; 0: for ever.
fn term(args: &mut Args<'_>) -> Result<Option<i64>, Fault> {
    let time = args.time_in("<time>", TimeUnit::Seconds)?;
    Ok(i64::try_from(time.as_secs()).ok().filter(|seconds| *seconds > 0))
}

/// An argument that goes into Set-Cookie as it is.
fn attribute<'a>(args: &mut Args<'a>, what: &str) -> Result<&'a str, Fault> {
    let word = args.need(what)?;
    match word.bytes().any(|byte| byte == b';' || byte.is_ascii_control()) {
        true => Err(args.fault(format!("{what}: ';' and control characters cannot stand in it"))),
        false => Ok(word),
    }
}
