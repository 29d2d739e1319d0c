//! Secrets in arguments, and keys: of the process's certificates, and of files.

use openssl::pkey::{PKey, Private, Public};
use openssl::rsa::Rsa;
use openssl::x509::X509;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use terse_sample::argument::Arg;
use terse_sample::convert::base64;
use terse_sample::{ArgList, Compiler, Env, Octets};
use terse_tls::{TokenCertificate, Tokens};

/// An argument in base 64: decoded when it was read, or a variable's text now.
pub(crate) fn secret<'a>(args: &'a ArgList, i: usize, env: &Env<'a>) -> Option<Octets<'a>> {
    match args.at(i) {
        Arg::Str(bytes) => Some(Octets::from(&**bytes)),
        Arg::Var(slot) => base64::decode(&env.vars.get(*slot)?.into_octets()?, &base64::STANDARD),
        _ => None,
    }
}

/// Decodes an argument that is text. The error has the argument's name, not the text: it may be a key, and logs have many
/// readers.
pub(crate) fn check_secret(arg: &mut Arg, name: &str) -> Result<(), String> {
    if let Arg::Str(text) = arg {
        let bytes =
            base64::decode(text, &base64::STANDARD).ok_or_else(|| format!("the {name} is neither in base 64 nor a variable"))?;
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

/// Keys by the names that expressions have for them: certificates of the process, which may change, and files that were
/// read with the configuration. Expressions that find a name in a variable look here; no file is read for them.
pub(crate) struct Keyring {
    tokens: Arc<Tokens>,
    files: Arc<Files>,
}

/// Keys by the file that held them.
#[derive(Default)]
struct Files {
    public: Shelf<Public>,
    private: Shelf<Private>,
}

type Shelf<T> = RwLock<HashMap<Box<[u8]>, PKey<T>>>;

/// Kind of the file that a key is taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    /// A file with a public key.
    Key,
    /// A certificate.
    Certificate,
}

/// A certificate is there, and not for tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Forbidden;

impl Keyring {
    /// The keys of a configuration.
    pub(crate) fn of(compiler: &mut Compiler<'_>) -> Arc<Keyring> {
        Arc::new(Keyring { tokens: compiler.registry.own(), files: compiler.registry.own() })
    }

    /// The public key of that name.
    ///
    /// # Errors
    /// The certificate has no `jwt on`.
    pub(crate) fn public(&self, holds: Holds, name: &[u8]) -> Result<Option<PKey<Public>>, Forbidden> {
        if holds == Holds::Key {
            return Ok(found(&self.files.public, name));
        }
        match self.certificate(name) {
            Some(TokenCertificate::Allowed { public, .. }) => Ok(Some(public)),
            Some(TokenCertificate::Forbidden) => Err(Forbidden),
            None => Ok(None),
        }
    }

    /// Whether a text is no secret: the name of a key or a certificate, or a key or certificate written out.
    pub(crate) fn is_known(&self, name: &[u8]) -> bool {
        name.trim_ascii_start().starts_with(b"-----BEGIN ")
            || found(&self.files.public, name).is_some()
            || found(&self.files.private, name).is_some()
            || self.certificate(name).is_some()
    }

    /// Whether a text is that of a file, by its ending or because there is one.
    pub(crate) fn is_file(name: &[u8], compiler: &Compiler<'_>) -> bool {
        ENDINGS.iter().any(|ending| name.ends_with(ending)) || read(name, compiler).is_ok()
    }

    /// Whether a text is that of a file that is not there.
    pub(crate) fn is_missing(name: &[u8], compiler: &Compiler<'_>) -> bool {
        Keyring::is_file(name, compiler) && read(name, compiler).is_err()
    }

    /// The private key of that name.
    pub(crate) fn private(&self, name: &[u8]) -> Option<PKey<Private>> {
        match self.certificate(name) {
            Some(TokenCertificate::Allowed { private, .. }) => private,
            Some(TokenCertificate::Forbidden) => None,
            None => found(&self.files.private, name),
        }
    }

    fn certificate(&self, name: &[u8]) -> Option<TokenCertificate> {
        self.tokens.find(std::str::from_utf8(name).ok()?)
    }

    /// Reads a file's public key.
    pub(crate) fn load_public(&self, name: &[u8], compiler: &Compiler<'_>) -> Result<PKey<Public>, String> {
        let pem = read(name, compiler)?;
        let key = PKey::public_key_from_pem(&pem)
            .or_else(|_| Rsa::public_key_from_pem_pkcs1(&pem).and_then(PKey::from_rsa))
            .map_err(|_| format!("'{}' holds no public key in PEM", name.escape_ascii()))?;
        keep(&self.files.public, name, key.clone());
        Ok(key)
    }

    /// Makes the vault find a certificate, or read its file, once the stores are known; the result will be as it is now.
    pub(crate) fn load_certificate(&self, name: &[u8], compiler: &mut Compiler<'_>) -> Result<(), String> {
        if self.is_of_store(name, compiler)? {
            return Ok(());
        }
        let pem = read(name, compiler)?;
        let key = X509::from_pem(&pem).and_then(|certificate| certificate.public_key());
        key.map(drop).map_err(|_| format!("'{}' holds no certificate in PEM", name.escape_ascii()))
    }

    /// Finds a certificate with its key once the stores are known, or reads a file's private key.
    pub(crate) fn load_private(&self, name: &[u8], compiler: &mut Compiler<'_>) -> Result<(), String> {
        if self.is_of_store(name, compiler)? {
            return Ok(());
        }
        let pem = read(name, compiler)?;
        // The empty pass phrase keeps OpenSSL from asking for one at the terminal.
        let key = PKey::private_key_from_pem_passphrase(&pem, b"")
            .map_err(|_| format!("'{}' holds no private key in PEM, or one with a pass phrase", name.escape_ascii()))?;
        keep(&self.files.private, name, key);
        Ok(())
    }

    /// Whether a name is one of a named store. The vault gets the name; a certificate that the vault has goes before a file
    /// that is read here.
    fn is_of_store(&self, name: &[u8], compiler: &mut Compiler<'_>) -> Result<bool, String> {
        let text = std::str::from_utf8(name).map_err(|_| "the name of a certificate must be UTF-8")?;
        self.tokens.name(text);
        if !text.starts_with('@') {
            return Ok(false);
        }
        let named = Arc::new(Named { tokens: self.tokens.clone(), name: text.into() });
        compiler.registry.refer_checked(named, compiler.place.clone(), |named: &(dyn Any + Send + Sync)| {
            named.downcast_ref::<Named>().and_then(Named::problem)
        });
        Ok(true)
    }
}

/// A certificate of a store that an expression names.
struct Named {
    tokens: Arc<Tokens>,
    name: Box<str>,
}

impl Named {
    fn problem(&self) -> Option<String> {
        let is_there = self.tokens.find(&self.name).is_some();
        (!is_there).then(|| format!("'{}': no 'crt-store' has it", self.name))
    }
}

/// Endings of the names of files with keys and certificates.
const ENDINGS: [&[u8]; 5] = [b".pem", b".crt", b".cer", b".key", b".pub"];

fn found<T>(shelf: &Shelf<T>, name: &[u8]) -> Option<PKey<T>> {
    shelf.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

fn keep<T>(shelf: &Shelf<T>, name: &[u8], key: PKey<T>) {
    shelf.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), key);
}

fn read(name: &[u8], compiler: &Compiler<'_>) -> Result<Vec<u8>, String> {
    let files = compiler.registry.files.as_ref().ok_or("files of keys cannot be read here")?;
    let path = std::str::from_utf8(name).map_err(|_| "the name of a file must be UTF-8")?;
    files.read(path).map_err(|reason| format!("cannot read '{path}': {reason}"))
}
