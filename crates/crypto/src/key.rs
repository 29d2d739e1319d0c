//! Secrets in arguments, and public keys that were read from files.

use openssl::pkey::{PKey, Private, Public};
use openssl::rsa::Rsa;
use openssl::x509::X509;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use terse_sample::argument::Arg;
use terse_sample::convert::base64;
use terse_sample::{ArgList, Compiler, Env, Octets};

/// An argument in base 64: decoded when it was read, or a variable's text now.
pub(crate) fn secret<'a>(args: &'a ArgList, i: usize, env: &Env<'a>) -> Option<Octets<'a>> {
    match args.at(i) {
        Arg::Str(bytes) => Some(Octets::from(&**bytes)),
        Arg::Var(slot) => base64::decode(&env.vars.get(*slot)?.into_octets()?, base64::STANDARD),
        _ => None,
    }
}

/// Decodes an argument that is text. The error has the argument's name, not the text: it may be a key, and logs are read by many.
pub(crate) fn check_secret(arg: &mut Arg, name: &str) -> Result<(), String> {
    if let Arg::Str(text) = arg {
        let bytes =
            base64::decode(text, base64::STANDARD).ok_or_else(|| format!("the {name} is neither in base 64 nor a variable"))?;
        *arg = Arg::Str((*bytes).into());
    }
    Ok(())
}

/// An argument as it is, or a variable's text.
pub(crate) fn text<'a>(args: &'a ArgList, i: usize, env: &Env<'a>) -> Option<Octets<'a>> {
    match args.at(i) {
        Arg::Str(bytes) => Some(Octets::from(&**bytes)),
        Arg::Var(slot) => env.vars.get(*slot)?.into_octets(),
        _ => None,
    }
}

/// Keys by the file that held them. Expressions that find the file's name in a variable look here; nothing is read for them.
#[derive(Default)]
pub(crate) struct Keyring {
    public: RwLock<HashMap<Box<[u8]>, PKey<Public>>>,
    certificates: RwLock<HashMap<Box<[u8]>, PKey<Public>>>,
    private: RwLock<HashMap<Box<[u8]>, PKey<Private>>>,
}

/// What a file must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// A public key.
    Key,
    /// A certificate.
    Certificate,
}

impl Keyring {
    /// The public key that was read from that file.
    pub(crate) fn public(&self, holds: Holds, name: &[u8]) -> Option<PKey<Public>> {
        self.keys(holds).read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The private key that was read from that file.
    pub(crate) fn private(&self, name: &[u8]) -> Option<PKey<Private>> {
        self.private.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn keys(&self, holds: Holds) -> &RwLock<HashMap<Box<[u8]>, PKey<Public>>> {
        if holds == Holds::Key { &self.public } else { &self.certificates }
    }

    /// Reads a file's public key.
    pub(crate) fn load_public(&self, holds: Holds, name: &[u8], compiler: &Compiler<'_>) -> Result<PKey<Public>, String> {
        let pem = read(name, compiler)?;
        let key = match holds {
            Holds::Key => PKey::public_key_from_pem(&pem)
                .or_else(|_| Rsa::public_key_from_pem_pkcs1(&pem).and_then(PKey::from_rsa))
                .map_err(|_| format!("'{}' holds no public key in PEM", name.escape_ascii())),
            Holds::Certificate => X509::from_pem(&pem)
                .and_then(|certificate| certificate.public_key())
                .map_err(|_| format!("'{}' holds no certificate in PEM", name.escape_ascii())),
        }?;
        self.keys(holds).write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), key.clone());
        Ok(key)
    }

    /// Reads a file's private key.
    pub(crate) fn load_private(&self, name: &[u8], compiler: &Compiler<'_>) -> Result<PKey<Private>, String> {
        let pem = read(name, compiler)?;
        // The empty pass phrase keeps OpenSSL from asking for one at the terminal.
        let key = PKey::private_key_from_pem_passphrase(&pem, b"")
            .map_err(|_| format!("'{}' holds no private key in PEM, or one with a pass phrase", name.escape_ascii()))?;
        self.private.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), key.clone());
        Ok(key)
    }
}

fn read(name: &[u8], compiler: &Compiler<'_>) -> Result<Vec<u8>, String> {
    let files = compiler.registry.files.as_ref().ok_or("files of keys cannot be read here")?;
    let path = std::str::from_utf8(name).map_err(|_| "the name of a file must be UTF-8")?;
    files.read(path).map_err(|reason| format!("cannot read '{path}': {reason}"))
}
