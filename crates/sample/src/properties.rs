//! Properties for any input: parsers never panic, and expressions that they accept can be evaluated.

use crate::logformat::Usage;
use crate::testing::{Bench, words};
use proptest::prelude::*;

/// Texts that look like expressions more often than chance would have it.
fn expression() -> impl Strategy<Value = String> {
    let (fetches, converters): (Vec<_>, Vec<_>) = {
        let bench = Bench::new();
        let fetches = bench.registry.fetches().iter().map(|f| f.name).collect();
        (fetches, bench.registry.converters().iter().map(|c| c.name).collect())
    };
    let argument = prop_oneof![
        Just("1".to_owned()),
        Just("-3".to_owned()),
        Just("txn.x".to_owned()),
        Just("':'".to_owned()),
        Just("host".to_owned()),
        Just("9223372036854775807".to_owned()),
        Just("-9223372036854775808".to_owned()),
        "[ -~]{0,6}",
    ];
    let arguments = proptest::collection::vec(argument, 0..4);
    let call = |names: Vec<&'static str>| {
        (proptest::sample::select(names), proptest::option::of(arguments.clone()))
            .prop_map(|(name, args)| args.map_or(name.to_owned(), |args| format!("{name}({})", args.join(","))))
    };
    (call(fetches), proptest::collection::vec(call(converters), 0..4))
        .prop_map(|(fetch, converters)| [vec![fetch], converters].concat().join(","))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions_are_total(text in prop_oneof![expression(), "[ -~]{0,40}", ".{0,20}"]) {
        let mut bench = Bench::new();
        if let Ok(expr) = bench.expr(&text) {
            let env = bench.env();
            let one = expr.eval(&env);
            if let Some(value) = one {
                let stored = value.clone().store();
                prop_assert_eq!(value, stored);
            }
            expr.each(&env, &mut |_| false);
        }
    }

    #[test]
    fn conditions_are_total(text in prop_oneof![
        "[a-z{}!| ]{0,40}",
        (expression(), "(-i |-m str |-m reg |-m int |-m ip |-m len |-m dom )?", "[ -~]{0,20}").prop_map(|(e, f, p)| format!("{{ {e} {f}{p} }}")),
    ]) {
        let mut bench = Bench::new();
        if let Ok(condition) = bench.condition(&text) {
            condition.eval(&bench.env());
        }
        let _ = bench.compiler().criterion(&words(&text), 3);
    }

    #[test]
    fn formats_are_total(text in prop_oneof!["[ -~]{0,40}", ".{0,20}", expression().prop_map(|e| format!("x %{{+Q+X}}[{e}] %ci")), "(%[a-zA-Z(){}+\\[\\]]{0,8}){0,4}"]) {
        let mut bench = Bench::new();
        for usage in [Usage::Log, Usage::Http, Usage::Text] {
            if let Ok(format) = bench.format(&text, usage) {
                let mut out = Vec::new();
                format.write(&bench.env(), &mut out);
                if let Some(text) = format.as_text() {
                    prop_assert_eq!(text, &out[..]);
                }
            }
        }
    }

    #[test]
    fn base64_round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        use crate::convert::base64::{STANDARD, URL, decode, encode};
        for alphabet in [&STANDARD, &URL] {
            let text = encode(&bytes, alphabet);
            let back = decode(&text, alphabet);
            prop_assert_eq!(back.as_deref(), Some(&bytes[..]));
        }
    }
}
