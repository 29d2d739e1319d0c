//! User-Agents that ask for codings that they cannot decode.
//!
//! HAProxy's rule: a client that calls itself `Mozilla/4` gets plain bytes, but Internet Explorer 7 and later, and 6 with the
//! second service pack of Windows XP (`SV1`), can decode.

use memchr::memmem;

/// Whether that User-Agent cannot be trusted to decode.
pub fn is_broken(user_agent: &[u8]) -> bool {
    if !user_agent.starts_with(b"Mozilla/4") {
        return false;
    }
    let Some(at) = memmem::find(user_agent, b"MSIE ") else { return true };
    let digits = user_agent[at + 5..].iter().take_while(|b| b.is_ascii_digit()).take(3);
    match digits.fold(0u16, |version, &b| version * 10 + u16::from(b - b'0')) {
        0..=5 => true,
        6 => memmem::find(user_agent, b"SV1").is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_old_ones_are_broken() {
        for (agent, broken) in [
            ("Mozilla/5.0 (X11; Linux x86_64)", false),
            ("curl/8", false),
            ("Mozilla/4", true),
            ("Mozilla/4.08 [en] (WinNT; U)", true),
            ("Mozilla/4.0 (compatible; MSIE 5.5; Windows NT 5.0)", true),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", false),
            ("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0)", false),
            ("Mozilla/4.0 (compatible; MSIE 10.0; Windows NT 6.2)", false),
            ("Mozilla/4.0 (compatible; MSIE ", true),
        ] {
            assert_eq!(is_broken(agent.as_bytes()), broken, "{agent}");
        }
    }
}
