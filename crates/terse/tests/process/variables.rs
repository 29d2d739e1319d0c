//! Configurations with many variables, as the generator that measured the change from a list to a tree prints them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::{Terse, client};
use terse_lab::variables;

fn service(last: usize) -> String {
    format!(
        "frontend web\n\tmode http\n\tbind fd@${{web}}\n{}\thttp-request return status 200 hdr x-some %[var(txn.var0005)] hdr x-last %[var(txn.var{last:04})]\n",
        variables::rules(last)
    )
}

/// Values of the rules: each is its number and the ten before it; sums stay at the greatest number.
fn sums(last: usize) -> Vec<i64> {
    let mut sums: Vec<i64> = Vec::new();
    for i in 0..=last {
        let sum = sums.iter().rev().take(10).fold(i as i64, |sum, one| sum.saturating_add(*one));
        sums.push(sum);
    }
    sums
}

#[test]
fn the_generator_s_text_is_valid_as_it_stands() {
    for last in [100, 1000] {
        let checked = Terse::with(&service(last).replace("fd@${web}", "127.0.0.1:8080")).arg(&["-c"]).run().expect(0);
        assert!(!checked.stderr.contains("txn.var"), "{}", checked.stderr);
    }
}

#[test]
fn its_sums_are_right() {
    for last in [60, 100, 1000] {
        let terse = Terse::with(&service(last)).listen("web").start();
        let sums = sums(last);
        for _ in 0..2 {
            let answer = client::get(terse.address("web"), "/");
            assert_eq!(answer.status, 200);
            assert_eq!(answer.field("x-some"), Some(sums[5].to_string().as_str()));
            assert_eq!(answer.field("x-last"), Some(sums[last].to_string().as_str()));
        }
        terse.end();
    }
}
