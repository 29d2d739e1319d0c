//! Conditions and maps: matches by every method, from lines and from files.

use super::compare::{Case, compare};
use std::path::Path;
use tempfile::TempDir;

/// Requests whose first line and fields all conditions and maps look at.
const REQUESTS: &[&str] = &[
    "GET /a/b/c.png?x=1 | Host: www.example.com:8080 | X-Num: 42 | X-Addr: 10.1.2.3 | X-List: one, Two,three | X-Word: alpha.beta_gamma",
    "GET /A/B/index.HTML | Host: EXAMPLE.org | X-Num: -7 | X-Addr: ::ffff:10.9.9.9 | X-List: two | X-Word: ALPHA",
    "GET /images/x/y/z.tar.gz | Host: static.example.net | X-Num: 0 | X-Addr: 2001:db8:1::1 | X-Word: a.b.c",
    "GET / | Host: x | X-Num: 2147483647 | X-Addr: 2002:c0a8:0101::7 | X-List: ,, | X-Word: .lead.trail.",
    "GET /b?a/b | Host: b.example.com | X-Num: 12abc | X-Addr: 192.168.77.5 | X-Word: beta",
    "GET /none | X-Num: abc | X-Addr: nonsense | X-Word: x",
    "POST /a | X-Num: 100 | X-Addr: 10.0.0.7 || hello",
    "BREW /a/b | Host: example.com",
];

/// Conditions.
const CONDITIONS: &[&str] = &[
    "path /none",
    "path -i /NONE /a/B/INDEX.html",
    "path -m str /b /a",
    "path_beg /a /images",
    "path_beg -i /IMAGES /a/",
    "path_end .png .gz",
    "path_end -i .html .PNG",
    "path_sub /b/ mages",
    "path_sub -i INDEX",
    "path_dir b",
    "path_dir -i B",
    "path_dir x/y",
    "path_dir /x/y/",
    "path_dir images c.png",
    "path_dom png",
    "path_dom -i HTML gz",
    "path_reg ^/[a-z]+$",
    "path_reg -i ^/A/[^/]+/",
    "path_reg \\.(png|gz)$",
    "path_len 5",
    "path_len 1:3 gt 15",
    "path_len lt 3 ge 20",
    "url_sub ?",
    "url_dir a b",
    "url_end a/b",
    "hdr(host) www.example.com:8080 x",
    "hdr(host) -i example.ORG",
    "hdr_dom(host) example",
    "hdr_dom(host) -i Example",
    "hdr_dom(host) com 8080",
    "hdr_beg(host) www. static.",
    "hdr_end(host) .com .net",
    "hdr_reg(host) ^[a-z.]+$",
    "hdr_len(host) 1 11:12",
    "hdr_cnt(x-list) 3",
    "hdr_cnt(x-list) ge 2",
    "hdr_val(x-num) 42",
    "hdr_val(x-num) lt 0",
    "hdr_val(x-num) gt 41 lt -6",
    "hdr_val(x-num) 1:50 100:",
    "hdr_val(x-num) 5-60",
    "hdr_val(x-num) -- -1",
    "hdr_val(x-num) :-1",
    "hdr_val(x-num) eq 0 100",
    "hdr(x-num) -m int 42",
    "hdr(x-num) -m int ge 100",
    "hdr(x-num) -m bool",
    "hdr(x-num) -m len 2:3",
    "hdr(x-num) -m bin 3432 303A 2d37",
    "hdr(x-list) two",
    "hdr(x-list) -i TWO",
    "hdr(x-list,1) one",
    "hdr(x-list) -m found",
    "hdr(x-none) -m found",
    "hdr(x-list) -m sub e,",
    "hdr(x-word) -m dom beta_gamma lead.trail",
    "hdr(x-word) -m dir alpha.beta_gamma",
    "hdr(x-word) -m beg -i alp",
    "hdr(x-word) -m end .",
    "hdr(x-word) -m str -i alpha x",
    "hdr(x-word),lower alpha",
    "hdr(x-word),length 5:20",
    "hdr(x-word),field(2,.) -m str b beta_gamma",
    "hdr_ip(x-addr) 10.0.0.0/8",
    "hdr_ip(x-addr) 10.1.2.3 192.168.0.0/16",
    "hdr_ip(x-addr) 192.168.0.0/255.255.0.0",
    "hdr_ip(x-addr) 10.0.0.7/255.0.0.255",
    "hdr_ip(x-addr) 2001:db8::/32 ::1",
    "hdr_ip(x-addr) ::/0",
    "hdr_ip(x-addr) 0.0.0.0/0",
    "hdr(x-addr) -m ip 10.0.0.0/9 2002::/16",
    "hdr(x-addr) -m ip 192.168.1.1",
    "method GET",
    "method POST BREW",
    "method -m reg ^[GP]",
    "src 127.0.0.0/8",
    "src -n 10.0.0.0/8 127.0.0.1",
    "dst_port gt 1",
    "always_true",
    "always_false",
    "url_param(x) 1",
    "url_param(x) -m found",
    "str(a) -- a -i",
    "int(5) 1:4 5",
    "path -f {words}",
    "path -m beg -f {words}",
    "path -m beg -i -f {words}",
    "path -m dir -f {words} /none",
    "path -M -f {table}",
    "hdr(x-word) -m sub -f {words} -f {more} alph",
    "hdr_ip(x-addr) -f {networks}",
    "hdr_val(x-num) -f {numbers}",
    "hdr(x-word) -m reg -f {expressions}",
    "hdr(x-word) -m len -f {numbers}",
];

/// Maps.
const MAPS: &[&str] = &[
    "path,map({table})",
    "path,map_str({table},none)",
    "path,map_beg({table})",
    "path,map_beg({table},\"a default\")",
    "path,map_end({table},none)",
    "path,map_sub({table},none)",
    "path,map_dir({table},none)",
    "path,map_dom({table},none)",
    "path,map_reg({templates},none)",
    "path,map_regm({templates},none)",
    "req.hdr(x-word),map_reg({templates})",
    "req.hdr(x-word),map_regm({templates})",
    "req.hdr(host),lower,map_dom({hosts},none)",
    "req.hdr(host),map_dom({hosts},none)",
    "req.hdr(host),map_end({hosts},none)",
    "req.hdr(host),host_only,map_str_int({counts},7)",
    "req.hdr(host),map_dom_int({counts},7)",
    "req.hdr(host),map_sub_int({counts})",
    "req.hdr(host),map_end_int({counts},-1),add(1)",
    "req.hdr(host),map_beg_ip({addresses},192.0.2.1)",
    "req.hdr(host),map_dom_ip({addresses},2001:db8::9)",
    "req.hdr(host),map_str_ip({addresses})",
    "req.hdr(host),map_reg_ip({addresses})",
    "req.hdr(x-num),map_int({ranges},none)",
    "req.hdr(x-num),map_int({ranges})",
    "req.hdr(x-num),map_int_int({lengths},0)",
    "path,length,map_int_int({lengths})",
    "req.hdr(x-addr),map_ip({networks_of},none)",
    "src,map_ip({networks_of})",
    "req.hdr(x-addr),map_ip_int({sizes},0)",
    "req.hdr(x-addr,1),map_ip_ip({gateways})",
    "path,map_beg({table}),length",
    "str(a),map({table},),length",
];

/// The files that they name.
const FILES: &[(&str, &str)] = &[
    ("words", "# words\n/a\n  /images\n\n/A/B\n#/none\n/b\r\nb\n"),
    ("more", "a.b\nx \n"),
    ("networks", "10.0.0.0/8\n# 192.168.0.0/16\n2001:db8::/32\n10.0.0.7/255.0.0.255\n"),
    ("numbers", "42\n100:200\n5-7\n"),
    ("expressions", "^[a-z]+$\n(beta|gamma)$\n"),
    (
        "table",
        "# paths\n/a one\n/a/b   the second  \n/a two\n\t/images\timages here\n/none\n.png picture\nb letter\n.gz zipped\nimages/x dir\n#b not\n",
    ),
    ("templates", "^/([a-z])/(.*)$ \\2-\\1\n^/(.*)\\.(.*)$ <\\1|\\2|\\3>\n^([a-z]+)[.](.*)$ \\0\\x21\n^ALPHA$ plain\n"),
    ("hosts", "first.example.com first\nexample.com second\nwww.example.com third\n.net fourth\nexample fifth\n.com sixth\n"),
    ("counts", "example.com 5\nwww.example.com -6\nx +9\nexample.net 99999999999999999999\n.org\n"),
    ("addresses", "www. 10.20.30.40\nx 2001:db8::5\n^b\\. 10.1.1.1\nexample.net 10.2.2.2\n"),
    ("ranges", "1:9 few\n42 the answer\n40:50 about it\n:-1 below\n100: much\n0 nothing\n"),
    ("lengths", "1 10\n5:7 20\n6 30\n:100 40\n"),
    (
        "networks_of",
        "10.0.0.0/8 ten\n10.1.0.0/16 ten one\n127.0.0.0/8 loop\n192.168.0.0/255.255.0.0 home\n2001:db8::/32 doc\n::/0 six\n",
    ),
    ("sizes", "0.0.0.0/0 1\n10.0.0.0/8 2\n10.1.2.3 3\n10.0.0.7/255.0.0.255 4\n"),
    ("gateways", "10.0.0.0/8 10.0.0.1\n192.168.0.0/16 2001:db8::1\n"),
];

/// Number of them in one configuration: HAProxy's limit of fields is 101.
const FIELDS: usize = 40;

/// HAProxy's cache of look-ups confuses methods that read one file: `map_sub` returns the value that `map_end` has found for the
/// same text.
const NO_CACHE: &str = "global\n tune.pattern.cache-size 0\n";

#[test]
fn patterns_and_maps() {
    let folder = tempfile::tempdir().unwrap();
    let conditions = cases(&folder, CONDITIONS, |number, text| format!("http-request add-header X-C{number} yes if {{ {text} }}"));
    let maps = cases(&folder, MAPS, |number, text| format!("http-request set-header X-M{number} [%[{text}]]"));
    compare(&conditions.into_iter().chain(maps).collect::<Vec<_>>());
}

fn cases(folder: &TempDir, texts: &[&str], line: impl Fn(usize, &str) -> String) -> Vec<Case> {
    for (name, content) in FILES {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let numbered: Vec<_> = texts.iter().enumerate().collect();
    let case = |some: &[(usize, &&str)]| {
        let lines: Vec<_> = some.iter().map(|(number, text)| named(folder.path(), &line(*number, text))).collect();
        Case { lines: format!("server a {{a}}\n {}\n{NO_CACHE}", lines.join("\n ")), requests: REQUESTS, allowed: &[] }
    };
    numbered.chunks(FIELDS).map(case).collect()
}

/// A line with the files' paths in the place of their names.
fn named(folder: &Path, line: &str) -> String {
    FILES.iter().fold(line.to_owned(), |line, (name, _)| line.replace(&format!("{{{name}}}"), folder.join(name).to_str().unwrap()))
}
