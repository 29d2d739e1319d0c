//! The configuration's keywords for decoding. HAProxy has none; they stand where `compression` stands.

use super::settings::{Decompression, Responses};
use crate::coding::{CODINGS, Coding};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, near};

/// The table, for the program to join with the others.
pub const KEYWORDS: &[Keyword] = &[
    keyword(
        "decompression response",
        "on | off | recode",
        "Decodes responses whose client does not take their coding; with 'recode' those too that 'compression' codes better for it.",
        response,
    ),
    keyword(
        "decompression request",
        "<coding>... | off",
        "Decodes requests' bodies of these codings, which the servers cannot take: gzip, deflate, zstd, br.",
        request,
    ),
    keyword(
        "decompression accept",
        "<coding>... | off",
        "Asks servers for these codings whatever the client takes; needs 'decompression response'.",
        accept,
    ),
    keyword(
        "decompression max-size",
        "<size>",
        "The most that a body may come to; for requests 128m without it, for responses no limit; 0: no limit.",
        max_size,
    ),
    keyword("decompression max-size-req", "<size>", "The same for requests alone.", max_request_size),
    keyword("decompression max-size-res", "<size>", "The same for responses alone.", max_response_size),
    keyword(
        "decompression max-ratio",
        "<number>",
        "How many times more bytes than came in may come out, once it is a megabyte; 200 without it, 0: no limit.",
        max_ratio,
    ),
];

const fn keyword(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PROXY, arguments, summary, kind: Kind::Done(parser) }
}

fn section<'s>(scope: &'s mut Scope<'_>) -> &'s mut Decompression {
    scope.section.settings.entry::<Decompression>()
}

fn response(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let responses = match args.need("'on', 'off' or 'recode'")? {
        "on" => Responses::On,
        "off" => Responses::Off,
        "recode" => Responses::Recode,
        other => return Err(args.fault(format!("expects 'on', 'off' or 'recode', not '{other}'"))),
    };
    section(scope).response = Some(responses);
    Ok(())
}

fn request(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let codings = codings(args)?;
    section(scope).request = Some(codings);
    Ok(())
}

fn accept(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let codings = codings(args)?;
    section(scope).accept = Some(codings);
    Ok(())
}

/// `off`, or codings.
fn codings(args: &mut Args<'_>) -> Result<Vec<Coding>, Fault> {
    let mut list = Vec::new();
    if args.accept("off") {
        return Ok(list);
    }
    loop {
        let word = args.need("<coding>")?;
        let Some(coding) = Coding::of_word(word).filter(|coding| DECODED.contains(coding)) else {
            let known: Vec<_> = CODINGS.iter().filter(|entry| DECODED.contains(&entry.coding)).map(|entry| entry.word).collect();
            let fault =
                args.fault(format!("'{word}' is no coding that can be decoded")).hint(format!("one of {}", known.join(", ")));
            return Err(near::hinted(fault, word, known));
        };
        if !list.contains(&coding) {
            list.push(coding);
        }
        if args.peek().is_none() {
            return Ok(list);
        }
    }
}

/// The codings that can be named. `deflate` stands for both of its forms.
const DECODED: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Zstd, Coding::Brotli];

fn max_size(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let bytes = Some(args.size("<size>")?);
    let section = section(scope);
    (section.request_max_bytes, section.response_max_bytes) = (bytes, bytes);
    Ok(())
}

fn max_request_size(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).request_max_bytes = Some(args.size("<size>")?);
    Ok(())
}

fn max_response_size(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    section(scope).response_max_bytes = Some(args.size("<size>")?);
    Ok(())
}

fn max_ratio(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let ratio = args.integer("<number>", 0..=1_000_000)?;
    section(scope).max_ratio = u32::try_from(ratio).ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::settings::{DEFAULT_MAX_RATIO, DEFAULT_REQUEST_MAX_BYTES};
    use crate::decode::{Effective, Limits};
    use crate::testing::load;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(terse_config::keyword::tables_are_sound(&[KEYWORDS]), [""; 0]);
    }

    #[test]
    fn the_backends_word_goes_first_and_defaults_are_inherited() {
        let (config, said) = load(
            &[KEYWORDS],
            "defaults\n decompression request gzip br gzip\n decompression max-ratio 50\n\
             frontend f\n decompression response on\n decompression max-size-res 1g\n\
             backend b\n decompression request off\n decompression response recode\n decompression accept zstd\n decompression max-size 10m\n",
        );
        assert_eq!(said, [""; 0]);
        let [front, back] = [0, 1].map(|i| config.sections[i].settings.get::<Decompression>());
        let alone = Effective::new(front, None);
        assert_eq!(alone.request_codings(), [Coding::Gzip, Coding::Brotli]);
        assert_eq!((alone.responses(), alone.accepted_codings()), (Responses::On, &[][..]));
        assert_eq!(alone.response_limits(), Limits { max_bytes: 1 << 30, max_ratio: 50, strict: false });
        assert_eq!(alone.request_limits().max_bytes, DEFAULT_REQUEST_MAX_BYTES);
        let both = Effective::new(front, back);
        assert_eq!(both.request_codings(), []);
        assert_eq!((both.responses(), both.accepted_codings()), (Responses::Recode, &[Coding::Zstd][..]));
        assert_eq!(both.request_limits(), Limits { max_bytes: 10 << 20, max_ratio: 50, strict: true });
        assert_eq!(both.response_limits().max_bytes, 10 << 20);
        assert_eq!(
            Effective::new(None, None).response_limits(),
            Limits { max_bytes: 0, max_ratio: DEFAULT_MAX_RATIO, strict: false }
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for line in [
            "decompression",
            "decompression response",
            "decompression response maybe",
            "decompression request",
            "decompression request gzip identity",
            "decompression request raw-deflate",
            "decompression accept compress",
            "decompression accept off gzip",
            "decompression max-size many",
            "decompression max-ratio -1",
            "decompression max-ratio 100 200",
        ] {
            let (_, said) = load(&[KEYWORDS], &format!("backend b\n {line}\n"));
            assert_eq!(said.len(), 1, "{line}: {said:?}");
        }
    }
}
