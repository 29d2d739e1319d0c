//! Conditions: the text after `.if`, `.elif` and `-cc`.
//!
//! ```text
//! expression = conjunction *( "||" conjunction )
//! conjunction = term *( "&&" term )
//! term = *"!" ( integer | "(" expression ")" | predicate [ "(" [ argument *( "," argument ) ] ")" ] )
//! ```
//!
//! All is parsed before any part is evaluated; evaluation stops as soon as the result is known. The empty text is false.

use crate::environment::Environment;
use crate::predicate::{self, Predicate};
use crate::words;

/// Reason why a condition has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ConditionError {
    /// The reason.
    pub reason: String,
    /// Offset in the text of the byte that it concerns; in the argument itself when that could not be cut into words.
    pub position: usize,
}

/// Whether a condition holds. Its words have been cut and joined by single blanks.
pub fn evaluate(text: &str, environment: &Environment) -> Result<bool, ConditionError> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_blanks();
    if text.is_empty() {
        return Ok(false);
    }
    let expression = reader.expression(0)?;
    match reader.rest().chars().next() {
        None => expression.holds(environment),
        Some(next) => Err(reader.error(format!("unexpected character '{next}' at the end of conditional expression '{text}'"))),
    }
}

/// Whether a condition holds that was not cut into words yet, as in the argument of `-cc`.
pub fn evaluate_argument(argument: &str, environment: &Environment) -> Result<bool, ConditionError> {
    let variables = |name: &str| environment.variables.get(name).cloned();
    match words::split_argument(argument.as_bytes(), &variables) {
        Ok(cut) => evaluate(&join(&cut.words), environment),
        Err(error) => Err(ConditionError { position: error.span.start, reason: error.reason }),
    }
}

/// The words of a condition as one text.
pub(crate) fn join(words: &[words::Word]) -> String {
    words.iter().map(|word| word.display()).collect::<Vec<_>>().join(" ")
}

/// A condition, read.
enum Expression {
    /// An integer: whether it is not zero.
    Constant(bool),
    /// A predicate, its arguments, and its offset.
    Predicate(&'static Predicate, Vec<String>, usize),
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    fn holds(&self, environment: &Environment) -> Result<bool, ConditionError> {
        match self {
            Expression::Constant(value) => Ok(*value),
            Expression::Predicate(predicate, arguments, position) => {
                (predicate.holds)(arguments, environment).map_err(|reason| ConditionError { reason, position: *position })
            }
            Expression::Not(inner) => Ok(!inner.holds(environment)?),
            Expression::All(parts) => {
                for part in parts {
                    if !part.holds(environment)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Expression::Any(parts) => {
                for part in parts {
                    if part.holds(environment)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// A cursor over the text of a condition.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn expression(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let mut parts = vec![self.conjunction(depth)?];
        while self.accept("||") {
            parts.push(self.conjunction(depth)?);
        }
        Ok(one_or(parts, Expression::Any))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let mut parts = vec![self.term(depth)?];
        while self.accept("&&") {
            parts.push(self.term(depth)?);
        }
        Ok(one_or(parts, Expression::All))
    }

    fn term(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let mut negated = false;
        while self.accept("!") {
            negated = !negated;
        }
        let start = self.at;
        let term = if let Some(value) = self.integer() {
            Expression::Constant(value)
        } else if self.accept("(") {
            if depth == MAX_DEPTH {
                return Err(self.error(format!("more than {MAX_DEPTH} nested parentheses in conditional expression")));
            }
            let inner = self.expression(depth + 1)?;
            if !self.accept(")") {
                return Err(self.error(format!("expected ')' after conditional expression '{}'", &self.text[start..])));
            }
            inner
        } else {
            self.predicate()?
        };
        self.skip_blanks();
        Ok(if negated { Expression::Not(Box::new(term)) } else { term })
    }

    /// An integer as C's `strtol` reads it in base 0: whether it is not zero.
    fn integer(&mut self) -> Option<bool> {
        let rest = self.rest();
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
        let hexadecimal = hexadecimal.filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()));
        let (digits, radix) = match hexadecimal {
            Some(digits) => (digits, 16),
            None if unsigned.starts_with('0') => (unsigned, 8),
            None => (unsigned, 10),
        };
        let after = digits.trim_start_matches(|c: char| c.is_digit(radix));
        let number = &digits[..digits.len() - after.len()];
        self.at = if number.is_empty() { self.at } else { self.text.len() - after.len() };
        (!number.is_empty()).then(|| number.bytes().any(|digit| digit != b'0'))
    }

    fn predicate(&mut self) -> Result<Expression, ConditionError> {
        let start = self.at;
        let rest = self.rest();
        let name = &rest[..rest.find([' ', '(']).unwrap_or(rest.len())];
        let Some(found) = predicate::find(name) else {
            let what = if rest.is_empty() { self.text } else { rest };
            return Err(self.error(format!("unparsable conditional expression '{what}'")));
        };
        self.at += name.len();
        let arguments = self.arguments(found).map_err(|error| ConditionError {
            reason: format!("{} in arguments of predicate '{name}' used in conditional expression", error.reason),
            ..error
        })?;
        Ok(Expression::Predicate(found, arguments, start))
    }

    /// The arguments of a predicate; without parentheses the first one is empty.
    fn arguments(&mut self, predicate: &Predicate) -> Result<Vec<String>, ConditionError> {
        let mut arguments = Vec::new();
        let opened = self.take('(');
        while arguments.len() < predicate.arguments {
            arguments.push(if opened { self.argument() } else { String::new() });
            if !opened || arguments.len() < predicate.arguments && !self.take(',') {
                break;
            }
        }
        if arguments.len() < predicate.arguments {
            return Err(self.error(format!("missing arguments (got {} of {})", arguments.len(), predicate.arguments)));
        }
        match opened && !self.take(')') {
            true if self.rest().is_empty() => Err(self.error("expected ')'".into())),
            true => Err(self.error(format!("expected ')' before '{}'", self.rest()))),
            false => Ok(arguments),
        }
    }

    /// An argument: up to a comma or a closing parenthesis outside quotes, with quotes and escapes of its own.
    fn argument(&mut self) -> String {
        let mut value = String::new();
        let mut quote = None;
        let mut chars = self.rest().char_indices().peekable();
        let mut end = self.rest().len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' | '\'' if quote == Some(c) => quote = None,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '\\' if quote != Some('\'') => {
                    let escaped = chars.next_if(|(_, next)| " \\\"'rnt".contains(*next)).map(|(_, next)| next);
                    value.push(match escaped {
                        Some('r') => '\r',
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(other) => other,
                        None => '\\',
                    });
                }
                ',' | ')' if quote.is_none() => {
                    end = at;
                    break;
                }
                _ => value.push(c),
            }
        }
        self.at += end;
        value
    }

    /// Takes a mark and the blanks after it.
    fn accept(&mut self, mark: &str) -> bool {
        self.skip_blanks();
        let here = self.rest().starts_with(mark);
        if here {
            self.at += mark.len();
            self.skip_blanks();
        }
        here
    }

    /// Takes a character, and no blanks.
    fn take(&mut self, mark: char) -> bool {
        let here = self.rest().starts_with(mark);
        self.at += if here { mark.len_utf8() } else { 0 };
        here
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, reason: String) -> ConditionError {
        ConditionError { reason, position: self.at }
    }
}

fn one_or(mut parts: Vec<Expression>, many: fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            many(parts)
        }
    }
}

/// Parentheses nest on the stack; no real condition has this many.
const MAX_DEPTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment() -> Environment {
        Environment {
            variables: [("TESTVAR".into(), "1".into()), ("EMPTY".into(), String::new())].into(),
            version: "3.5-dev5-50872d-2".into(),
            features: vec!["THREAD".into(), "SLZ".into()],
            enabled: vec!["SPLICE".into()],
            ..Environment::default()
        }
    }

    fn answer(argument: &str) -> Result<bool, usize> {
        evaluate_argument(argument, &environment()).map_err(|error| error.position)
    }

    #[test]
    fn operators_integers_and_parentheses() {
        for (condition, expected) in [
            ("", false),
            ("\"\"", false),
            ("\"$NONE\"", false),
            ("0", false),
            ("1", true),
            ("+1", true),
            ("0x10", true),
            ("0x0", false),
            ("010", true),
            ("00", false),
            ("99999999999999999999999", true),
            ("-1000 && 200", true),
            ("!0", true),
            ("!!0", false),
            ("! ! 1", true),
            ("0 || 1 && 0", false),
            ("1 || 1 && 0", true),
            ("(1||1)&&0", false),
            ("1&&!0&&!((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", true),
            ("1   &&!   0&&    !((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", true),
            ("1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,a))", true),
            ("1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,b))", false),
            ("1 && !0 && !((streq(a,a) || !streq(a,a) && 1) || strneq(a,a))", false),
            ("0 && awslc_api_atleast(3)", false),
            ("defined(TESTVAR) && streq(\"$TESTVAR\",\"1\")", true),
        ] {
            assert_eq!(answer(condition), Ok(expected), "{condition}");
        }
    }

    #[test]
    fn syntax_errors_know_their_byte() {
        for (condition, position) in [
            ("200rrr", 3),
            ("!(0))", 4),
            ("streq(a,\"a)", 8),
            ("1 &&", 4),
            ("foo(", 0),
            ("1 1", 2),
            ("streq(a)", 7),
            ("version_atleast(2", 17),
            ("streq(a,b,c)", 9),
            ("fips_mode(x)", 10),
            ("(1", 2),
            ("()", 1),
            ("!", 1),
            ("- 1", 0),
            ("08", 1),
            ("1 # 2", 2),
            ("1 & 1", 2),
            ("awslc_api_atleast(3)", 0),
            ("1 && awslc_api_atleast(3)", 5),
            ("defined FOO", 8),
            ("streq('a,b','a,b')", 9),
            ("\u{e9}", 0),
        ] {
            assert_eq!(answer(condition), Err(position), "{condition}");
        }
        assert!(answer(&"(".repeat(100_000)).is_err());
        assert_eq!(answer(&format!("{}1{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH))), Ok(true));
        assert_eq!(answer(&format!("{}1", "1&&".repeat(100_000))), Ok(true));
    }

    #[test]
    fn arguments_have_quotes_of_their_own() {
        for (condition, expected) in [
            (r"streq(foo,'foo')", true),
            (r#"streq("foo bar",'foo bar')"#, true),
            (r#"streq(\"a,b\",'"a,b"')"#, true),
            (r#"streq('"a)b"',\"a)b\")"#, true),
            (r"streq(\\t,'\t')", true),
            (r"streq(,)", true),
            (r"defined", false),
            (r"defined()", false),
            (r"fips_mode", false),
            (r"fips_mode()", false),
        ] {
            assert_eq!(answer(condition), Ok(expected), "{condition}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer_or_an_error(text in r#"([!&|()01, "'\\a]|streq|defined|feature|\PC){0,40}"#) {
            if let Err(error) = evaluate(&text, &environment()) {
                prop_assert!(error.position <= text.len());
            }
        }
    }
}
