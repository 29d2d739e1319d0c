//! Conversations about maps and ACLs, as HAProxy has them.

use crate::commands::fixture::Talk;
use crate::settings::Level;

const MAPS: &str = "
frontend fe
 mode http
 bind 127.0.0.1:80
 timeout client 5s
 acl a path_beg -i /a /b
 http-request set-var(txn.x) path,map_beg(virt@m)
 http-request set-var(txn.y) path,map_str_int(virt@n,0)
 http-request deny if a or { path -M -f virt@m } or { path -f virt@l } or { always_true -u 9 }
";

fn talk() -> Talk {
    Talk::new(MAPS)
}

#[test]
fn keys_and_values_are_bytes() {
    let mut talk = talk();
    for line in [
        b"add map #1 caf\xe9 \xff\xfe".as_slice(),
        b"add map #1 \xff x",
        b"add map #1 \xfe y",
        b"add acl #4 /\x80",
        b"set map #1 \xff z\xff",
    ] {
        assert_eq!(talk.says_bytes(line), "\n");
    }
    let shown = talk.says_bytes(b"show map #1");
    for line in [r" caf\xe9 \xff\xfe\n", r" \xff z\xff\n", r" \xfe y\n"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(talk.says_bytes(b"show acl #4").contains(r" /\x80\n"));
    assert!(talk.says_bytes(b"get map #1 caf\xe9").contains(r"caf\xe9"));
    assert_eq!(talk.says_bytes(b"del map #1 \xfe"), "\n");
    assert_eq!(talk.says_bytes(b"del map #1 \xfd"), "Key not found.\n\n", "not what stands for bytes that are no text");
}

/// Counts of added and removed entries, of all versions; another value is no other entry.
#[test]
fn entries_are_counted() {
    let mut talk = talk();
    let counts = |talk: &mut Talk| {
        let info = talk.says("show info");
        let of =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim_start_matches(": ").parse().unwrap();
        let counts: (u64, u64) = (of("PatternsAdded"), of("PatternsFreed"));
        counts
    };
    let (added, freed) = counts(&mut talk);
    assert!(added >= 2 && freed == 0, "those of the file");
    for line in ["add map #1 a 1", "add map #1 b 2", "set map #1 a 3", "prepare map #1", "add map @1 #1 c 4"] {
        talk.says(line);
    }
    assert_eq!(counts(&mut talk), (added + 3, 0));
    talk.says("del map #1 b");
    assert_eq!(counts(&mut talk), (added + 3, 1));
    talk.says("commit map @1 #1");
    talk.says("clear map #1");
    assert_eq!(counts(&mut talk), (added + 3, 3));
}

#[test]
fn what_there_is() {
    let mut talk = talk();
    assert_eq!(
        talk.says("show map"),
        "# id (file) description\n\
         1 (virt@m) pattern loaded from file 'virt@m' used by map at file 'test' line 9, by map at file 'test' line 11. \
         curr_ver=0 next_ver=0 entry_cnt=0\n\
         2 (virt@n) pattern loaded from file 'virt@n' used by map at file 'test' line 10. curr_ver=0 next_ver=0 entry_cnt=0\n\n"
    );
    let acls = talk.says("show acl");
    for line in [
        "0 () acl 'path_beg' file 'test' line 8. curr_ver=0 next_ver=0 entry_cnt=2\n",
        "1 (virt@m) pattern loaded",
        "4 (virt@l) pattern loaded from file 'virt@l' used by acl at file 'test' line 11. ",
        "9 () acl 'always_true' file 'test' line 11. curr_ver=0 next_ver=0 entry_cnt=0\n",
    ] {
        assert!(acls.contains(&format!("\n{line}")), "{line}\n{acls}");
    }
    assert_eq!(talk.says("show acl #0"), "0x1000 /a\n0x1001 /b\n\n");
    talk.client.level = Level::Operator;
    assert_eq!(talk.says("show map"), "Permission denied\n\n");
}

#[test]
fn entries_come_change_and_go() {
    let mut talk = talk();
    assert_eq!(talk.says("add map virt@m /x one\\ two"), "\n");
    assert_eq!(talk.says("add map #1 /y two"), "\n");
    assert_eq!(talk.says_with("add map virt@m", "/z  three \n\t/x four\n"), "\n");
    assert_eq!(talk.says("show map virt@m"), "0x1000 /x one two\n0x1001 /y two\n0x1002 /z three \n0x1003 /x four\n\n");
    assert_eq!(talk.says("set map virt@m /x five;set map virt@m #0x1001 six"), "\n\n");
    assert_eq!(talk.says("show map #1"), "0x1000 /x five\n0x1001 /y six\n0x1002 /z three \n0x1003 /x five\n\n");
    assert_eq!(talk.says("del map virt@m /x; del map virt@m #0x1002; del map virt@m /x"), "\n\nKey not found.\n\n");
    assert_eq!(talk.says("show acl virt@m"), "0x1001 /y six\n\n");
    assert_eq!(talk.says("clear map virt@m; show map virt@m"), "\n\n");
    assert_eq!(talk.says("add acl virt@l a\\ b\\;; show acl virt@l; del acl virt@l a\\ b\\;"), "\n0x1000 a b;\n\n\n");
    assert_eq!(talk.says_with("add acl virt@l", "a b\nc\n"), "\n");
    assert_eq!(talk.says("show acl virt@l"), "0x1001 a b\n0x1002 c\n\n");
}

#[test]
fn values_are_looked_up() {
    let mut talk = talk();
    talk.says("add map virt@m /a/b x; add map virt@m /a y; add map virt@n k 7");
    assert_eq!(
        talk.says("get map virt@m /a/b"),
        "type=beg, case=sensitive, found=yes, idx=tree, key=\"/a/b\", value=\"x\", type=\"str\"\n\
         type=str, case=sensitive, found=yes, idx=tree, key=\"/a/b\", value=none\n\n"
    );
    assert_eq!(
        talk.says("get map virt@n k"),
        "type=str, case=sensitive, found=yes, idx=tree, key=\"k\", value=\"7\", type=\"sint\"\n\n"
    );
    assert_eq!(talk.says("get map virt@n x"), "type=str, case=sensitive, found=no\n\n");
    assert_eq!(talk.says("get acl #0 /BC"), "type=beg, case=insensitive, match=yes, idx=list, pattern=\"/b\"\n\n");
    assert_eq!(talk.says("get acl #9 1"), "type=bool, case=sensitive, match=yes, idx=list, pattern=unknown\n\n");
    assert_eq!(talk.says("get acl #9 0"), "type=bool, case=sensitive, match=no\n\n");
}

#[test]
fn versions_take_each_others_place() {
    let mut talk = talk();
    talk.says("add map virt@m /x one");
    assert_eq!(talk.says("add map @1 virt@m /y two"), "Version number in the future, please use 'prepare map' before.\n\n");
    assert_eq!(talk.says("prepare map virt@m"), "New version created: 1\n\n");
    assert_eq!(talk.says_with("add map @1 virt@m", "/y two\n/z three\n"), "\n");
    assert_eq!(talk.says("show map virt@m"), "0x1000 /x one\n\n");
    assert_eq!(talk.says("show map @1 virt@m"), "0x1001 /y two\n0x1002 /z three\n\n");
    assert_eq!(talk.says("show map @7 virt@m"), "\n");
    assert!(talk.says("show map").contains("curr_ver=0 next_ver=1 entry_cnt=3\n"));
    assert_eq!(talk.says("commit map @2 virt@m"), "Version number out of range.\n\n");
    assert_eq!(talk.says("commit map @1 virt@m; show map virt@m"), "\n0x1001 /y two\n0x1002 /z three\n\n");
    assert_eq!(
        talk.says("prepare acl virt@l; add acl @1 virt@l x; clear acl @1 virt@l; show acl @1 virt@l"),
        "New version created: 1\n\n\n\n\n"
    );
}

#[test]
fn what_is_wrong_is_said() {
    let mut talk = talk();
    for (line, said) in [
        ("show map nope", "Unknown map identifier. Please use #<id> or <file>."),
        ("show map #0", "Unknown map identifier. Please use #<id> or <file>."),
        ("show acl @x virt@m", "Malformed version number."),
        ("show acl virt@n", "Unknown ACL identifier. Please use #<id> or <file>."),
        ("get map virt@m", "Missing map identifier and/or key."),
        ("get acl", "Missing ACL identifier and/or key."),
        (
            "add map virt@m x",
            "'add map' expects three parameters (map identifier, key and value) or one parameter (map identifier) and a payload",
        ),
        ("add acl virt@l", "'add acl' expects two parameters: ACL identifier and pattern."),
        ("add acl virt@m x", "This ACL is shared with a map containing samples. You must use the command 'add map' to add values."),
        ("add map virt@n x y", "unable to parse 'y'."),
        ("set map virt@m x", "'set map' expects three parameters: map identifier, key and value."),
        ("set map virt@m x y", "entry not found."),
        ("set map virt@m #0xg y", "Malformed identifier. Please use #<id> or <file>."),
        ("del map virt@m", "This command expects two parameters: map identifier and key."),
        ("del acl virt@l #0x7", "Key not found."),
        ("clear acl", "Missing ACL identifier."),
        ("prepare map", "Unknown map identifier. Please use #<id> or <file>."),
        ("commit map virt@m", "Missing version number."),
        ("commit acl @1", "Missing ACL identifier."),
    ] {
        assert_eq!(talk.says(line), format!("{said}\n\n"), "{line}");
    }
    assert_eq!(talk.says_with("add map virt@m", "a b\nc\n"), "Missing value for key 'c'.\n\n");
}

#[test]
fn long_lists_come_in_pieces() {
    let mut talk = talk();
    let lines: String = (0..1_000).map(|n| format!("/{n} {n}\n")).collect();
    assert_eq!(talk.says_with("add map virt@m", &lines), "\n");
    let shown = talk.says("show map virt@m");
    assert_eq!(shown.lines().count(), 1_001);
    assert!(shown.ends_with("0x13e7 /999 999\n\n"), "{shown}");
}
