//! Lists of users: `userlist` sections, and the fetches that check a request's credentials against them.
//!
//! ```text
//! userlist ops: user, group -> UserList (in the Registry, by name) <- http_auth(ops), http_auth_group(ops)
//! ```
//!
//! A list may be named before its section comes, so both find the same list by that name. An expression that names a list
//! that stays empty is an error once the configuration is complete.
//!
//! A password is kept as the file has it: a hash of crypt(3), or plain text. The check of a hash takes milliseconds, or as
//! long as its rounds want, and browsers send the password with every request. So each user's last password that was right,
//! and the last ones that were wrong, are kept as keyed digests. These are quick, and their key never leaves the process. A
//! password that is not among them is checked by another thread, where the caller can wait
//! ([`terse_sample::World::defer`]).

mod crypt;
mod keywords;

pub(crate) use keywords::KEYWORDS;

use openssl::sha::sha256;
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use terse_sample::argument::{Arg, Own, ParamKind, need};
use terse_sample::convert::base64;
use terse_sample::{ArgList, Compiler, Env, Fetch, Needs, Type, Value, World};

/// The fetches.
pub(crate) const FETCHES: &[Fetch] = &[
    Fetch::one("http_auth", Type::Bool, "Whether the request's credentials are those of a user of a 'userlist'.", |args, env| {
        given(env).map(|_| Value::Bool(authenticated(args, env).is_some()))
    })
    .params(&[need(ParamKind::Str)])
    .needs(Needs::REQUEST.or(Needs::TIME))
    .check(find_list),
    Fetch::each(
        "http_auth_group",
        Type::Str,
        "The user's name, when the credentials are right; in an ACL, each of the user's groups.",
        |args, env| Some(Value::str(authenticated(args, env)?.1.name.as_bytes()).store()),
        |args, env, visit| {
            authenticated(args, env)
                .is_some_and(|(list, user)| list.groups_of(&user).iter().any(|group| visit(Value::str(group.as_bytes()).store())))
        },
    )
    .params(&[need(ParamKind::Str)])
    .needs(Needs::REQUEST.or(Needs::TIME))
    .check(find_list),
];

/// All lists, by name.
#[derive(Default)]
pub(crate) struct UserLists(Mutex<HashMap<Arc<str>, Arc<UserList>>>);

/// A `userlist` section.
pub(crate) struct UserList {
    name: Arc<str>,
    people: RwLock<People>,
}

#[derive(Default)]
struct People {
    users: HashMap<Box<[u8]>, Arc<User>>,
    /// Groups, with the users that their own lines name.
    groups: Vec<(Box<str>, Vec<Box<str>>)>,
}

/// A user of a list.
pub(crate) struct User {
    name: Box<str>,
    password: Password,
    /// The groups that the user's own line names.
    groups: Vec<Box<str>>,
    memory: Mutex<Memory>,
}

/// Digests of passwords that were given for a user.
#[derive(Default)]
struct Memory {
    /// A digest of the last one that was right.
    right: Option<Digest>,
    /// Digests of the last wrong passwords.
    wrong: VecDeque<Digest>,
}

type Digest = [u8; 32];

/// Kept digests of wrong passwords. They are more than are checked at a time: the result of a check that was waited for is
/// found here.
const WRONG_ONES: usize = 64;

impl Memory {
    fn verdict(&self, digest: &Digest) -> Option<bool> {
        if self.right.is_some_and(|right| openssl::memcmp::eq(&right, digest)) {
            return Some(true);
        }
        self.wrong.contains(digest).then_some(false)
    }

    fn learn(&mut self, digest: Digest, is_right: bool) {
        if is_right {
            self.right = Some(digest);
        } else if !self.wrong.contains(&digest) {
            self.wrong.truncate(WRONG_ONES - 1);
            self.wrong.push_front(digest);
        }
    }
}

/// Form in which a password is kept.
pub(crate) enum Password {
    /// No password matches: the line has none.
    None,
    /// `insecure-password`: as it is.
    Plain(Box<[u8]>),
    /// `password`: a hash of crypt(3).
    Hashed(Box<str>),
}

impl UserLists {
    /// The list of that name, which may have no users yet.
    pub(crate) fn list(&self, name: &str) -> Arc<UserList> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists.get(name) {
            return list.clone();
        }
        let name: Arc<str> = name.into();
        let list = Arc::new(UserList { name: name.clone(), people: RwLock::default() });
        lists.insert(name, list.clone());
        list
    }
}

impl UserList {
    /// Adds a user; false when the name is in use.
    pub(crate) fn add_user(&self, name: &str, password: Password, groups: Vec<Box<str>>) -> bool {
        let users = &mut self.people.write().unwrap_or_else(PoisonError::into_inner).users;
        let new = !users.contains_key(name.as_bytes());
        if new {
            let user = User { name: name.into(), password, groups, memory: Mutex::default() };
            users.insert(name.as_bytes().into(), Arc::new(user));
        }
        new
    }

    /// Adds a group; false when the name is in use.
    pub(crate) fn add_group(&self, name: &str, users: Vec<Box<str>>) -> bool {
        let groups = &mut self.people.write().unwrap_or_else(PoisonError::into_inner).groups;
        let new = groups.iter().all(|(known, _)| **known != *name);
        if new {
            groups.push((name.into(), users));
        }
        new
    }

    fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        self.people.read().unwrap_or_else(PoisonError::into_inner).users.get(name).cloned()
    }

    fn groups_of(&self, user: &User) -> Vec<Box<str>> {
        let people = self.people.read().unwrap_or_else(PoisonError::into_inner);
        let has = |(name, users): &&(Box<str>, Vec<Box<str>>)| users.contains(&user.name) || user.groups.contains(name);
        people.groups.iter().filter(has).map(|(name, _)| name.clone()).collect()
    }

    /// The fault of a list that is named, once the configuration is complete.
    fn problem(&self) -> Option<String> {
        let people = self.people.read().unwrap_or_else(PoisonError::into_inner);
        if people.users.is_empty() {
            return Some(format!("unable to find a userlist '{}' with users", self.name));
        }
        let known = |name: &str| people.users.contains_key(name.as_bytes());
        for (group, users) in &people.groups {
            if let Some(user) = users.iter().find(|user| !known(user)) {
                return Some(format!("userlist '{}': no such user '{user}' specified in group '{group}'", self.name));
            }
        }
        let is_group = |name: &str| people.groups.iter().any(|(group, _)| **group == *name);
        let mut users: Vec<_> = people.users.values().collect();
        users.sort_by(|a, b| a.name.cmp(&b.name));
        users.into_iter().find_map(|user| {
            let group = user.groups.iter().find(|group| !is_group(group))?;
            Some(format!("userlist '{}': no such group '{group}' specified in user '{}'", self.name, user.name))
        })
    }
}

impl User {
    /// Whether that is the password, as far as it is known: false for now while a check is put off.
    fn has_password(self: &Arc<User>, given: &[u8], world: &dyn World) -> bool {
        match &self.password {
            Password::None => return false,
            Password::Plain(plain) => return plain.len() == given.len() && openssl::memcmp::eq(plain, given),
            Password::Hashed(_) => {}
        }
        let digest = digest(given);
        if let Some(known) = self.memory().verdict(&digest) {
            return known;
        }
        let (user, given) = (self.clone(), given.to_vec());
        match world.defer(Box::new(move || user.check(&given, digest))) {
            None => false,
            Some(work) => {
                work();
                self.memory().verdict(&digest) == Some(true)
            }
        }
    }

    /// Checks whether that is the password, and remembers the result.
    fn check(&self, given: &[u8], digest: Digest) {
        let Password::Hashed(hash) = &self.password else { return };
        // Another thread may have checked the same meanwhile.
        if self.memory().verdict(&digest).is_none() {
            let is_right = crypt::matches(given, hash);
            self.memory().learn(digest, is_right);
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A digest that reveals nothing without the key.
fn digest(password: &[u8]) -> Digest {
    static KEY: std::sync::OnceLock<[u8; 32]> = std::sync::OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = [0; 32];
        // Without randomness the digest would still be compared only here.
        let _ = openssl::rand::rand_bytes(&mut key);
        key
    });
    sha256(&[&key[..], password].concat())
}

/// The list, and the user of it whose credentials the request has.
fn authenticated<'a>(args: &'a ArgList, env: &Env<'a>) -> Option<(&'a UserList, Arc<User>)> {
    let Arg::Own(Own(list)) = args.at(0) else { return None };
    let list = list.downcast_ref::<UserList>()?;
    let (text, colon) = given(env)?;
    let user = list.user(&text[..colon])?;
    user.has_password(&text[colon + 1..], env.world).then_some((list, user))
}

/// The name and the password of the request, and the index of the colon between them.
fn given(env: &Env<'_>) -> Option<(Vec<u8>, usize)> {
    let field = env.request?.credentials()?;
    let at = field.iter().position(|&b| b == b' ')?;
    let text =
        base64::decode(field[at..].trim_ascii_start(), &base64::STANDARD).filter(|_| field[..at].eq_ignore_ascii_case(b"basic"))?;
    let colon = text.iter().position(|&b| b == b':')?;
    Some((text.to_vec(), colon))
}

/// Replaces the name by the list.
fn find_list(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    let Some(Arg::Str(name)) = args.first() else { return Err("expects the name of a userlist".into()) };
    let name = std::str::from_utf8(name).map_err(|_| "the name of the userlist is no text")?;
    let list = compiler.registry.own::<UserLists>().list(name);
    let at = compiler.place.text.rfind(name).map(|at| at..at + name.len());
    let place = at.map_or_else(|| compiler.place.clone(), |span| compiler.place.at(span));
    compiler.registry.refer_checked(list.clone(), place, |list: &(dyn Any + Send + Sync)| {
        list.downcast_ref::<UserList>().and_then(UserList::problem)
    });
    *args = vec![Arg::Own(Own(list))];
    Ok(())
}

#[cfg(test)]
mod tests;
