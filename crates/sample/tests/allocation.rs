//! Booleans, numbers, addresses and short strings are fetched, converted, compared and kept without allocation.
//!
//! A program of its own: its allocator counts what each thread allocates.

#![allow(unsafe_code, reason = "an allocator that counts is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use terse_config::{Place, Word};
use terse_message::{Request, Response};
use terse_sample::{AclSet, Compiler, Env, Needs, Now, ProcessStore, Registry, Store, Value, Vars, World};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator; counting touches a cell of this thread, which needs no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Still;

impl World for Still {
    fn now(&self) -> Now {
        Now { seconds: 1_770_091_506, micros: 789_012 }
    }
    fn random(&self) -> u64 {
        7
    }
}

const EXPRESSIONS: &[&str] = &[
    "always_true",
    "int(-9223372036854775808)",
    "str('thirty bytes stay where they are')",
    "ipv4(192.0.2.1)",
    "ipv6(2001:db8::1)",
    "bin(00ff00ff)",
    "method",
    "path",
    "url",
    "query",
    "base,length",
    "base32",
    "url32,mod(7)",
    "req.hdr(host)",
    "req.hdr(host),lower",
    "req.hdr(host),field(1,:)",
    "req.hdr(host),host_only",
    "req.hdr(host),port_only",
    "req.hdr(x-list,2)",
    "req.hdr(x-list,-1),upper",
    "req.fhdr(x-list)",
    "req.hdr_cnt(x-list)",
    "req.hdr_val(x-num),add(1),mul(3),div(2),mod(7)",
    "req.hdr_ip(x-addr)",
    "req.hdr_ip(x-addr),ipmask(24)",
    "req.cook(c1)",
    "req.cook_val(n)",
    "url_param(a)",
    "urlp_val(a)",
    "url_param(b),url_dec",
    "url_param(b),url_dec,url_enc",
    "bin(0a41ff),json(utf8s)",
    "bin(0a41),json",
    "src",
    "src,ipmask(8)",
    "src_port,and(255),xor(1),cpl,neg",
    "dst_port,odd",
    "date",
    "date,add(-3600)",
    "rand(100)",
    "int(65),hex",
    "str(abc),base64",
    "str(YWJj),b64dec",
    "str(abc),sha1",
    "str(abc),crc32",
    "str(abc),xxh64",
    "path,djb2",
    "path,word(1,/),concat(-,txn.number)",
    "path,bytes(1,3)",
    "str(a.b.c),reverse_dom",
    "bool(true),iif(yes,no)",
    "int(258),htonl",
    "var(txn.number)",
    "var(txn.number),add(1)",
    "var(txn.short)",
    "var(txn.long),length",
    "path,set-var(txn.copy),length",
    "status",
    "res.hdr(server)",
    "res.cook(s)",
    "str(abc),strcmp(txn.short)",
    "str(10.1.2.3),ipmask(8)",
    "src,rfc7239_nn",
];

const CONDITIONS: &[&str] = &[
    "{ path_beg /a }",
    "{ path -m reg ^/[a-z]+ }",
    "{ req.hdr(x-list) one }",
    "{ req.hdr(x-list) -i TWO }",
    "{ src 192.0.2.0/24 10.0.0.0/8 }",
    "{ req.hdr_val(x-num) ge 3 }",
    "{ hdr_dom(host) example }",
    "{ var(txn.number) -m int 42 }",
    "METH_GET !{ url_param(a) -m found }",
];

#[test]
fn nothing_is_allocated() {
    let mut registry = Registry::default();
    let (acls, mut warnings) = (AclSet::default(), Vec::new());
    let mut request = Request::default();
    request.set_method(b"GET");
    request.set_target(b"/a/b/c.html?a=1&b=two%20x");
    for (name, value) in [
        ("Host", "Example.com:8080"),
        ("X-List", "one, two, three"),
        ("X-Num", "12"),
        ("X-Addr", "192.0.2.9"),
        ("Cookie", "c1=v1; n=7"),
    ] {
        request.fields.push(name.as_bytes(), value.as_bytes());
    }
    let mut response = Response::default();
    response.status = 200;
    response.fields.push(b"Server", b"s1");
    response.fields.push(b"Set-Cookie", b"s=1; Path=/");
    let (client, local): (SocketAddr, SocketAddr) = ("198.51.100.7:1234".parse().unwrap(), "[::1]:443".parse().unwrap());
    let stores = [(); 4].map(|()| Store::default());
    let process = ProcessStore::default();
    let env = Env {
        request: Some(&request),
        response: Some(&response),
        client: Some(&client),
        local: Some(&local),
        vars: Vars {
            process: Some(&process),
            session: Some(&stores[0]),
            transaction: Some(&stores[1]),
            request: Some(&stores[2]),
            response: Some(&stores[3]),
            ..Vars::default()
        },
        ..Env::bare(&Still)
    };
    let long = [b'x'; 200];
    for (name, value) in [("txn.number", Value::Int(42)), ("txn.short", Value::str(b"short")), ("txn.long", Value::str(&long))] {
        env.vars.set(registry.names.slot(name).unwrap(), value);
    }
    let mut compiler = Compiler {
        registry: &mut registry,
        acls: &acls,
        have: Needs::ALL,
        warnings: &mut warnings,
        word: 0,
        section: "test".into(),
        place: Place::nowhere(),
    };
    let mut wrong = Vec::new();
    for text in EXPRESSIONS {
        let expr = compiler.expression(text.as_bytes()).unwrap_or_else(|fault| panic!("{text}: {}", fault.reason));
        // The first evaluation may allocate memory that is kept: a variable's place, a regular expression's memory.
        assert!(expr.eval(&env).is_some(), "{text}");
        let before = ALLOCATIONS.get();
        let value = expr.eval(&env);
        let after = ALLOCATIONS.get();
        if after != before {
            wrong.push(format!("{text}: {} allocations for {value:?}", after - before));
        }
    }
    for text in CONDITIONS {
        let words: Vec<Word> = text.split(' ').map(|w| Word { bytes: w.as_bytes().to_vec(), span: 0..0 }).collect();
        let condition = compiler.condition(&words, 1, true).unwrap_or_else(|fault| panic!("{text}: {}", fault.reason));
        condition.eval(&env);
        let before = ALLOCATIONS.get();
        condition.eval(&env);
        let after = ALLOCATIONS.get();
        if after != before {
            wrong.push(format!("{text}: {} allocations", after - before));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The count is real: a string that is too long to be kept in place is copied.
#[test]
fn long_strings_are_allocated() {
    let mut registry = Registry::default();
    let (acls, mut warnings) = (AclSet::default(), Vec::new());
    let mut compiler = Compiler {
        registry: &mut registry,
        acls: &acls,
        have: Needs::ALL,
        warnings: &mut warnings,
        word: 0,
        section: "test".into(),
        place: Place::nowhere(),
    };
    let expr = compiler.expression(b"str(this text has more than thirty bytes in it),upper").unwrap();
    let before = ALLOCATIONS.get();
    assert!(expr.eval(&Env::bare(&Still)).is_some());
    assert!(ALLOCATIONS.get() > before);
}
