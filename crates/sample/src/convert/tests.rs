use crate::testing::Bench;
use crate::value::Value;

/// Bytes 0 to 255.
const ALL: &str = "str(AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w==),b64dec";

#[test]
fn hashes_of_all_bytes() {
    let mut bench = Bench::new();
    for (converter, expected) in [
        ("length", "0"),
        ("bytes(1),length", "255"),
        ("sha1,hex", "4916D6BDB7F78E6803698CAB32D1586EA457DFC8"),
        ("sha2,hex", "40AFF2E9D2D8922E47AFD4648E6967497158785FBD1DA870E7110266BF944880"),
        ("sha2(224),hex", "88702E63237824C4EB0D0FCFE41469A462493E8BEB2A75BBE5981734"),
        ("crc32", "688229491"),
        ("crc32(1)", "4230317029"),
        ("crc32c", "2621708363"),
        ("crc32c(1)", "2242979626"),
        ("djb2", "2589693061"),
        ("djb2(1)", "600622701"),
        ("sdbm", "905707648"),
        ("sdbm(1)", "3103804144"),
        ("wt6", "4090277559"),
        ("wt6(1)", "1192658767"),
        ("xxh3", "-7779787747613135503"),
        ("xxh3(1)", "5930632130106562027"),
        ("xxh32", "1497633363"),
        ("xxh32(1)", "1070421674"),
        ("xxh64", "2282408585429094475"),
        ("xxh64(1)", "-4689339368900765961"),
    ] {
        assert_eq!(bench.eval(&format!("{ALL},{converter}")).as_deref(), Some(expected), "{converter}");
    }
}

#[test]
fn converters_by_table() {
    let mut bench = Bench::new();
    bench.set("txn.five", Value::Int(5));
    bench.set("txn.text", Value::str(b"text"));
    bench.set("txn.key", Value::str(b"a2V5"));
    for (text, expected) in [
        ("str(AbC),lower", Some("abc")),
        ("str(AbC),upper", Some("ABC")),
        ("str(abc),reverse", Some("cba")),
        ("str(),reverse", Some("")),
        ("str(www.example.com.),reverse_dom", Some("com.example.www")),
        ("str(a..b),reverse_dom", None),
        ("str(abc),length", Some("3")),
        ("str(abc),hex", Some("616263")),
        ("str(1fF),hex2i", Some("511")),
        ("str(xyz),hex2i", None),
        ("str(a),base2", Some("01100001")),
        ("str(foobar),base64", Some("Zm9vYmFy")),
        ("str(fooba),base64", Some("Zm9vYmE=")),
        ("str(foob),base64", Some("Zm9vYg==")),
        ("str(Zm9vYg==),b64dec", Some("foob")),
        ("str(Zm9vYg=),b64dec", None),
        ("str(Zm9vY),b64dec", None),
        ("str(Zm9*),b64dec", None),
        ("bin(14fb9c03d97f12d97e),ub64enc", Some("FPucA9l_Etl-")),
        ("str(FPucA9l_Etl-),ub64dec,hex,lower", Some("14fb9c03d97f12d97e")),
        ("str(Zm9vYg),ub64dec", Some("foob")),
        ("str(/bla+%20?foo%3Dbar%2B42+42%20),url_dec", Some("/bla+ ?foo=bar+42 42 ")),
        ("str(/bla+%20?foo%3Dbar%2B42+42%20),url_dec(1)", Some("/bla  ?foo=bar+42 42 ")),
        ("str(%2),url_dec", None),
        ("str('foo=bar+42 42 '),url_enc", Some("foo%3Dbar%2B42%2042%20")),
        ("str(foo 1/2),json", Some("foo 1\\/2")),
        ("bin(e0),json(utf8)", None),
        ("bin(2de02d),json(utf8s)", Some("--")),
        ("bin(c3a9),json(utf8)", Some("\\u00e9")),
        ("bin(e9),json", Some("\\u00e9")),
        ("str(\\\"\\n\\\\),json", Some("\\\"\\n\\\\")),
        ("str(/foo/bar/baz),field(3,/)", Some("bar")),
        ("str(/foo//bar/baz),field(3,/)", Some("")),
        ("str(/foo),field(3,/)", None),
        ("str(f1_f2_f3__f5),field(5,_)", Some("f5")),
        ("str(f1_f2_f3__f5),field(2,_,0)", Some("f2_f3__f5")),
        ("str(f1_f2_f3__f5),field(2,_,2)", Some("f2_f3")),
        ("str(f1_f2_f3__f5),field(-2,_,3)", Some("f2_f3_")),
        ("str(f1_f2_f3__f5),field(-3,_,0)", Some("f1_f2_f3")),
        ("str(),field(1,_)", Some("")),
        ("str(/foo//bar/baz),word(2,/)", Some("bar")),
        ("str(/foo),word(2,/)", None),
        ("str(f1_f2_f3__f5),word(4,_)", Some("f5")),
        ("str(f1_f2_f3__f5),word(2,_,0)", Some("f2_f3__f5")),
        ("str(f1_f2_f3__f5),word(3,_,2)", Some("f3__f5")),
        ("str(f1_f2_f3__f5),word(-2,_,3)", Some("f1_f2_f3")),
        ("str(f1_f2_f3__f5),word(-3,_,0)", Some("f1_f2")),
        ("str(__),word(1,_)", None),
        ("str(012345),bytes(1,3)", Some("123")),
        ("str(012345),bytes(2,7)", Some("2345")),
        ("str(012345),bytes(99)", Some("")),
        ("str(012345),bytes(txn.five)", Some("5")),
        ("str(012345),bytes(0,txn.none)", None),
        ("str(012345),bytes(1,txn.five)", Some("12345")),
        ("str(a=1&test=34),param(test)", Some("34")),
        ("str(a=b&test&c=d),param(test)", Some("")),
        ("str(testing=123&test=4),param(test,0x26)", Some("4")),
        ("str(testing=123),param(test)", None),
        ("str(a;b=2),param(b,;)", Some("2")),
        ("str(xxaxx),ltrim(x)", Some("axx")),
        ("str(xxaxx),rtrim(x)", Some("xxa")),
        ("str(a\\r\\nb),cut_crlf", Some("a")),
        ("str(a),concat(-,txn.five,-)", Some("a-5-")),
        ("str(a),concat(-,txn.none)", Some("a-")),
        ("str(a),add_item(',',txn.text,_suff_)", Some("a,text_suff_")),
        ("str(),add_item(',',txn.text)", Some("text")),
        ("str(a),add_item(',',txn.none)", Some("a")),
        ("str(a),add_item(',',,_suff_)", Some("a,_suff_")),
        ("int(0),iif(ok,ko)", Some("ko")),
        ("int(2),iif(ok,ko)", Some("ok")),
        ("str(text),strcmp(txn.text)", Some("0")),
        ("str(tex),strcmp(txn.text)", Some("-1")),
        ("str(),strcmp(txn.text)", Some("-1")),
        ("str(text of it),strcmp(txn.text)", Some("1")),
        ("str(tezz),strcmp(txn.text)", Some("2")),
        ("str(this is a string),regsub(is a,is also a)", Some("this is also a string")),
        ("str(aXbX),regsub(x,-,ig)", Some("a-b-")),
        ("str(abc),regsub('(b)(c)','<\\2\\1>')", Some("a<cb>")),
        ("str(abc),regsub(x,y)", Some("abc")),
        ("str(abc),regsub(x*,-,g)", Some("-a-b-c-")),
        ("str(abc),regsub(a*,-,g)", Some("--b-c-")),
        ("str(abc),regsub('(.*)','[\\1]',g)", Some("[abc][]")),
        ("str(ab),regsub('b(?=$)|','-',g)", Some("-a--")),
        ("int(5),add(txn.five)", Some("10")),
        ("int(5),sub(7)", Some("-2")),
        ("int(9223372036854775807),add(1)", Some("9223372036854775807")),
        ("int(-9223372036854775808),div(-1)", Some("9223372036854775807")),
        ("int(-9223372036854775808),mod(-1)", Some("0")),
        ("int(5),div(0)", Some("9223372036854775807")),
        ("int(5),mod(0)", Some("0")),
        ("int(5),mul(-3)", Some("-15")),
        ("int(6),and(3)", Some("2")),
        ("int(6),or(3)", Some("7")),
        ("int(6),xor(3)", Some("5")),
        ("int(0),cpl", Some("-1")),
        ("int(7),neg", Some("-7")),
        ("int(7),odd", Some("1")),
        ("int(7),even", Some("0")),
        ("int(7),not", Some("0")),
        ("int(7),bool", Some("1")),
        ("int(7),add(txn.none)", None),
        ("str(192.168.1.101),ipmask(24)", Some("192.168.1.0")),
        ("str(2001:db8::1),ipmask(24,32)", Some("2001:db8::")),
        ("str(2001:db8::1),ipmask(24)", None),
        ("str(::ffff:192.168.1.101),ipmask(32,64)", Some("192.168.1.101")),
        ("str(0123456789),be2dec(:,1)", Some("48:49:50:51:52:53:54:55:56:57")),
        ("str(0123456789),be2dec(-,3)", Some("3158322-3355701-3553080-57")),
        ("str(0123456789),be2dec(::,3,1)", Some("3158322::3355701::3553080")),
        ("str(0123456789),le2dec(-,3)", Some("3289392-3486771-3684150-57")),
        ("bin(ffffffffffffffff),be2dec(,8)", Some("18446744073709551615")),
        ("str(),be2dec(:,1)", Some("")),
        ("str(0123456789),be2hex", Some("30313233343536373839")),
        ("str(0123456789),be2hex(--,3)", Some("303132--333435--363738--39")),
        ("str(0123456789),be2hex(.,3,1)", Some("303132.333435.363738")),
        ("int(1),htonl,hex", Some("00000001")),
        ("bin(610962),has_ctl", Some("0")),
        ("bin(610962),has_ctl(any)", Some("1")),
        ("bin(610962),has_ctl(0x200)", Some("1")),
        ("bin(610d62),has_ctl(http)", Some("1")),
        ("bin(617f62),has_ctl()", Some("1")),
        ("bin(610162),has_ctl(http)", Some("0")),
        ("str(1),digest(sha1),hex,lower", Some("356a192b7913b04c54574d18c28d46e6395428ab")),
        ("str(1),digest(MD5),hex,lower", Some("c4ca4238a0b923820dcc509a6f75849b")),
        ("str(Jefe),hmac(md5,a2V5),length", Some("16")),
        ("str(text),secure_memcmp(txn.text)", Some("1")),
        ("str(texx),secure_memcmp(txn.text)", Some("0")),
        ("str(tex),secure_memcmp(txn.text)", Some("0")),
        ("int(1),utime(%Y-%m-%d %H:%M:%S %j %a)", Some("1970-01-01 00:00:01 001 Thu")),
        ("int(951782400),utime(%F %T %b %e %Z)", Some("2000-02-29 00:00:00 Feb 29 GMT")),
        ("int(1770091506),ltime(%H:%M %z)", Some("05:05 +0100")),
        ("int(1770091506789),ms_utime(%S.%N)", Some("06.789000000")),
        ("int(1770091506789012),us_utime(%S.%3N %Q)", Some("06.789 %Q")),
        ("int(784111777),http_date", Some("Sun, 06 Nov 1994 08:49:37 GMT")),
        ("int(784111777),http_date(3600)", Some("Sun, 06 Nov 1994 09:49:37 GMT")),
        ("int(784111777123),http_date(0,ms)", Some("Sun, 06 Nov 1994 08:49:37.123 GMT")),
        ("str('Sun, 06 Nov 1994 08:49:37 GMT'),date", Some("784111777")),
        ("str('Sunday, 06-Nov-94 08:49:37 GMT'),date", Some("784111777")),
        ("str(Sun Nov  6 08:49:37 1994),date", Some("784111777")),
        ("str(yesterday),date", None),
        ("req.fhdr(accept-language),language(en;de)", Some("en")),
        ("req.fhdr(accept-language),language(de;it)", Some("de")),
        ("req.fhdr(accept-language),language(it,none)", Some("none")),
        ("req.fhdr(accept-language),language(fr;en)", Some("fr")),
        ("req.fhdr(accept-language),language(fr-CH-1)", None),
        ("str(it),language(en)", None),
        ("req.hdr(host),host_only", Some("example.com")),
        ("req.hdr(host),port_only", Some("8080")),
        ("str([::1]),host_only", Some("[::1]")),
        ("str([::1]:80),port_only", Some("80")),
        ("str(::1),port_only", Some("1")),
        ("str(kept),set-var(txn.new)", Some("kept")),
        ("var(txn.new)", Some("kept")),
        ("str(x),set-var(txn.new,ifnotset)", None),
        ("var(txn.new)", Some("kept")),
        ("str(x),unset-var(txn.new)", Some("x")),
        ("var(txn.new)", None),
        ("path,lower,field(2,/),upper", Some("DIR")),
        ("src,ipmask(8),length", Some("9")),
        ("method,lower", Some("get")),
    ] {
        assert_eq!(bench.eval(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn keyed_digests() {
    let mut bench = Bench::new();
    // RFC 4231, test case 2, and RFC 2202 likewise.
    bench.set("txn.key", Value::str(b"SmVmZQ=="));
    let text = "str(what do ya want for nothing?)";
    for (converter, expected) in [
        ("hmac(sha256,SmVmZQ==)", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ("hmac(sha256,txn.key)", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        ("hmac(sha256,)", "76d9e7194e7dbc3aa00bbe8ffb9f6fcb5a932170f971f948bb2ab61607d2b9d6"),
        ("hmac(sha1,txn.key)", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        ("hmac(md5,txn.key)", "750c783e6ab0b503eaa86e310a5db738"),
    ] {
        assert_eq!(bench.eval(&format!("{text},{converter},hex,lower")).as_deref(), Some(expected), "{converter}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let mut bench = Bench::new();
    for (text, said) in [
        ("str(a),field(0,:)", "must not be 0"),
        ("str(a),field(1,)", "empty"),
        ("str(a),field(1)", "missing arguments (got 1/2)"),
        ("str(a),bytes(-1)", "negative"),
        ("str(a),bytes(0,-1)", "positive"),
        ("str(a),bytes(0,0)", "positive"),
        ("str(a),be2dec(:,0)", "between 1 and 8"),
        ("str(a),be2hex(:)", "positive"),
        ("str(a),has_ctl(bogus)", "'bogus'"),
        ("str(a),has_ctl(0x400000000)", "bits beyond"),
        ("str(a),json(utf9)", "'utf9'"),
        ("str(a),regsub((,b)", "unclosed group"),
        ("str(a),regsub('(?=a',b)", "regular expression"),
        ("str(a),regsub(a,b,x)", "flag 'x'"),
        ("str(a),param(x,ab)", "neither one character"),
        ("str(a),digest(sha3)", "unknown digest"),
        ("str(a),sha2(1)", "224"),
        ("str(a),hmac(sha1,*)", "base 64"),
        ("str(a),add_item(x,)", "must be given"),
        ("str(a),add(x)", "invalid variable name"),
        ("str(a),url_enc(path)", "'path'"),
        ("str(a),set-var(txn.x,ifnever)", "unknown condition"),
        ("always_true,ipmask(8)", "takes a value of type address, not bool"),
        ("str(a),map_beg(file)", "files of patterns cannot be read here"),
        ("str(a),map_beg_ip(file,1.2)", "the default '1.2' is not an address"),
        ("str(a),map_ip_ip(file,10.0.0.0/8)", "the default '10.0.0.0/8' is not an address"),
        ("str(a),map_beg_int(file,x)", "'x' as type"),
        ("str(a),map_regn(file)", "unknown converter"),
    ] {
        let fault = bench.expr(text).expect_err(text);
        assert!(fault.reason.contains(said), "{text}: {}", fault.reason);
    }
}

/// Examples of HAProxy's manual, with other values: of converters that version 2.6, which serves for comparison, does not
/// have.
#[test]
fn as_the_manual_of_3_5_shows() {
    let mut bench = Bench::new();
    bench.set("txn.from", Value::Int(2));
    bench.set("txn.len", Value::Int(3));
    for (text, expected) in [
        ("bin(0a0b0c0d0e),le2dec(:,2)", Some("2826:3340:14")),
        ("bin(0a0b0c0d0e),le2dec(/,2,1)", Some("2826/3340")),
        ("bin(0a0b0c0d0e),le2dec(,4,1)", Some("218893066")),
        ("bin(c0a80101),le2dec(.,1)", Some("192.168.1.1")),
        ("str(k=v&l=w&k=x),param(k)", Some("v")),
        ("str(k&l=w),param(k)", Some("")),
        ("str(k=&l&m=k),param(l)", Some("")),
        ("str(k=8;l=9;m=7),param(l,;)", Some("9")),
        ("str(k=8),param(n)", None),
        ("str('Tue, 15 Nov 1994 08:12:31 GMT'),date", Some("784887151")),
        ("str('Tuesday, 15-Nov-94 08:12:31 GMT'),date", Some("784887151")),
        ("str('Tue Nov 15 08:12:31 1994'),date", Some("784887151")),
        ("str('15 Nov 1994'),date", None),
        ("str(abcdef),bytes(txn.from,txn.len)", Some("cde")),
        ("str('cd ef'),reverse", Some("fe dc")),
        ("str(mail.shop.test),reverse_dom", Some("test.shop.mail")),
        ("str(shop.test.),reverse_dom", Some("test.shop")),
        ("str('proto=http;host=\"shop.test:81\"'),rfc7239_field(host)", Some("shop.test:81")),
        ("str('for=192.0.2.4;proto=http'),rfc7239_field(proto)", Some("http")),
        ("int(1700000000123),ms_utime('%Y/%m/%d/%H:%M:%S.%3N %z')", Some("2023/11/14/22:13:20.123 +0000")),
    ] {
        assert_eq!(bench.eval(text).as_deref(), expected, "{text}");
    }
}
