//! Calls that the `openssl` crate does not have. The only module with unsafe code.
#![allow(unsafe_code, reason = "calls of OpenSSL that the openssl crate does not offer")]

use crate::counters::{COUNTERS, bump};
use crate::hello;
use crate::remembered;
use crate::tickets::{self, TicketKey};
use foreign_types::{ForeignType, ForeignTypeRef};
use openssl::asn1::Asn1ObjectRef;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::ocsp::OcspResponseRef;
use openssl::pkey::{Id, PKeyRef};
use openssl::ssl::{SslContextBuilder, SslOptions, SslRef, SslSessionRef, SslVersion};
use openssl::stack::StackRef;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::{X509, X509CrlRef, X509NameRef, X509Ref, X509StoreContextRef};
use openssl_sys as ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uchar, c_uint, c_ulong, c_void};
use std::ptr;

unsafe extern "C" {
    fn SSL_CTX_set_timeout(ctx: *mut ffi::SSL_CTX, seconds: c_long) -> c_long;
    fn SSL_group_to_name(ssl: *mut ffi::SSL, group: c_int) -> *const c_char;
    fn SSL_CTX_set_msg_callback(ctx: *mut ffi::SSL_CTX, callback: MessageCallback);
    fn SSL_CTX_set_info_callback(ctx: *mut ffi::SSL_CTX, callback: InfoCallback);
    fn SSL_CIPHER_find(ssl: *mut ffi::SSL, number: *const c_uchar) -> *const ffi::SSL_CIPHER;
    fn SSL_get_options(ssl: *const ffi::SSL) -> u64;
    fn SSL_get_signature_type_nid(ssl: *const ffi::SSL, nid: *mut c_int) -> c_int;
    fn X509_STORE_add_crl(store: *mut ffi::X509_STORE, list: *mut ffi::X509_CRL) -> c_int;
    fn X509_CRL_get_version(list: *const ffi::X509_CRL) -> c_long;
    fn X509_CRL_get_signature_nid(list: *const ffi::X509_CRL) -> c_int;
    fn SSL_get_early_data_status(ssl: *const ffi::SSL) -> c_int;
    fn EVP_PKEY_set_type(key: *mut ffi::EVP_PKEY, kind: c_int) -> c_int;
    fn SSL_SESSION_is_resumable(session: *const ffi::SSL_SESSION) -> c_int;
    fn OCSP_RESPONSE_print(to: *mut ffi::BIO, response: *mut ffi::OCSP_RESPONSE, flags: c_ulong) -> c_int;
    fn SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx: *mut ffi::SSL_CTX, callback: TicketCallback) -> c_int;
    fn OPENSSL_cleanse(bytes: *mut c_void, len: usize);
    fn OSSL_PARAM_construct_utf8_string(key: *const c_char, text: *mut c_char, len: usize) -> ffi::OSSL_PARAM;
    fn ERR_error_string_n(error: c_ulong, buffer: *mut c_char, len: usize);
    fn SSL_CTX_set_session_ticket_cb(ctx: *mut ffi::SSL_CTX, make: MakeTicket, take: *const c_void, of: *mut c_void) -> c_int;
    fn SSL_SESSION_set1_ticket_appdata(session: *mut ffi::SSL_SESSION, bytes: *const c_void, len: usize) -> c_int;
    fn SSL_SESSION_get0_ticket_appdata(session: *mut ffi::SSL_SESSION, bytes: *mut *mut c_void, len: *mut usize) -> c_int;
    fn SSL_SESSION_set1_id_context(session: *mut ffi::SSL_SESSION, name: *const c_uchar, len: c_uint) -> c_int;
    fn X509_NAME_print_ex(to: *mut ffi::BIO, name: *const ffi::X509_NAME, indent: c_int, flags: c_ulong) -> c_int;
    fn PEM_read_bio_X509_AUX(
        from: *mut ffi::BIO,
        certificate: *mut *mut ffi::X509,
        password: *const c_void,
        argument: *mut c_void,
    ) -> *mut ffi::X509;
    fn i2d_X509_AUX(certificate: *const ffi::X509, to: *mut *mut c_uchar) -> c_int;
    fn X509_STORE_CTX_get0_untrusted(chain: *const ffi::X509_STORE_CTX) -> *mut ffi::stack_st_X509;
}

/// Adds a certificate to the chain of the one that the context got last.
pub(crate) fn add_chain_certificate(context: &mut SslContextBuilder, certificate: &X509Ref) -> Result<(), ErrorStack> {
    // SAFETY: both pointers are of living objects; with 1 as argument OpenSSL takes a reference of its own.
    let done = unsafe { ffi::SSL_CTX_ctrl(context.as_ptr(), ffi::SSL_CTRL_CHAIN_CERT, 1, certificate.as_ptr().cast()) };
    if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
}

type MessageCallback = unsafe extern "C" fn(c_int, c_int, c_int, *const c_void, usize, *mut ffi::SSL, *mut c_void);

/// Shows each message of clients' handshakes to [`hello::take`], with a number.
pub(crate) fn on_message(context: &mut SslContextBuilder, number: usize) -> Result<(), ErrorStack> {
    // SAFETY: the context lives, the callback is a function, and its argument is a number that is never used as a pointer.
    unsafe {
        SSL_CTX_set_msg_callback(context.as_ptr(), message);
        let argument = ptr::without_provenance_mut(number);
        let done = ffi::SSL_CTX_ctrl(context.as_ptr(), SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, argument);
        if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
    }
}

unsafe extern "C" fn message(
    is_sent: c_int,
    _version: c_int,
    kind: c_int,
    bytes: *const c_void,
    len: usize,
    ssl: *mut ffi::SSL,
    number: *mut c_void,
) {
    if is_sent == 0 && kind == HANDSHAKE && !bytes.is_null() {
        // SAFETY: OpenSSL calls this while it makes a handshake, with its connection, and with a message that lives as long
        // as the call.
        unsafe { hello::take(SslRef::from_ptr_mut(ssl), std::slice::from_raw_parts(bytes.cast(), len), number.addr()) };
    }
}

type InfoCallback = unsafe extern "C" fn(*const ffi::SSL, c_int, c_int);

/// Counts the clients of a context that ask for another handshake and are refused.
pub(crate) fn count_renegotiations(context: &mut SslContextBuilder) {
    // SAFETY: the context lives, and the callback is a function.
    unsafe { SSL_CTX_set_info_callback(context.as_ptr(), info) };
}

unsafe extern "C" fn info(_ssl: *const ffi::SSL, what: c_int, value: c_int) {
    if what == SSL_CB_WRITE_ALERT && value & 0xff == NO_RENEGOTIATION {
        bump(&COUNTERS.renegotiations);
    }
}

/// `ssl.h`
const SSL_CB_WRITE_ALERT: c_int = 0x4008;
/// RFC 5246 section 7.2.2: the number of the alert.
const NO_RENEGOTIATION: c_int = 100;

/// RFC 8446 section 5.1: the kind of records with handshakes.
const HANDSHAKE: c_int = 22;
const SSL_CTRL_SET_MSG_CALLBACK_ARG: c_int = 16;

/// OpenSSL's name of a cipher, if it knows it.
pub(crate) fn cipher_name(ssl: &SslRef, number: [u8; 2]) -> Option<&'static str> {
    // SAFETY: the connection lives, and two bytes are read. Ciphers and their names are OpenSSL's and stay.
    let name = unsafe {
        let cipher = SSL_CIPHER_find(ssl.as_ptr(), number.as_ptr());
        if cipher.is_null() {
            return None;
        }
        CStr::from_ptr(ffi::SSL_CIPHER_get_name(cipher))
    };
    name.to_str().ok()
}

/// The kind of key that a server has signed its handshake with, by OpenSSL's number.
pub(crate) fn signature_kind(ssl: &SslRef) -> Option<i32> {
    let mut nid = 0;
    // SAFETY: the connection lives, and there is room for the number.
    (unsafe { SSL_get_signature_type_nid(ssl.as_ptr(), &mut nid) } > 0).then_some(nid)
}

/// Whether a server signs its handshake with a key of this kind.
pub(crate) fn signs_with(ssl: &SslRef, kind: Id) -> bool {
    signature_kind(ssl).is_some_and(|signature| is_of_kind(signature, kind))
}

/// Whether a signature is one of such a key.
pub(crate) fn is_of_kind(signature: i32, kind: Id) -> bool {
    // A key of RSA can sign as one of PSS does (RFC 8446 section 4.2.3).
    signature == kind.as_raw() || signature == Id::RSA_PSS.as_raw() && kind == Id::RSA
}

type MakeTicket = unsafe extern "C" fn(*mut ffi::SSL, *mut c_void) -> c_int;

/// Sets the chain above the certificate that a connection was given last.
pub(crate) fn set_chain(ssl: &mut SslRef, chain: &[X509]) -> Result<(), ErrorStack> {
    // SAFETY: the connection lives; without a list its chain is emptied.
    unsafe { ffi::SSL_ctrl(ssl.as_ptr(), SSL_CTRL_CHAIN, 0, ptr::null_mut()) };
    for certificate in chain {
        // SAFETY: the connection and the certificate live; with 1 OpenSSL takes a reference of its own.
        let done = unsafe { ffi::SSL_ctrl(ssl.as_ptr(), ffi::SSL_CTRL_CHAIN_CERT, 1, certificate.as_ptr().cast()) };
        if done <= 0 {
            return Err(ErrorStack::get());
        }
    }
    Ok(())
}

/// Completes the note of a session before a ticket of it is made.
pub(crate) fn complete_sessions(context: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    // SAFETY: the context lives, and the callback is a function; there is none for tickets that are taken, and no argument.
    let done = unsafe { SSL_CTX_set_session_ticket_cb(context.as_ptr(), make_ticket, ptr::null(), ptr::null_mut()) };
    if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
}

unsafe extern "C" fn make_ticket(ssl: *mut ffi::SSL, _: *mut c_void) -> c_int {
    // SAFETY: OpenSSL calls this while it makes a handshake, with its connection.
    remembered::complete(unsafe { SslRef::from_ptr(ssl) });
    1
}

/// Makes a session carry some bytes, in memory and in tickets. Only while its handshake is made: later other threads may
/// have it.
pub(crate) fn set_session_note(session: &SslSessionRef, note: &[u8]) {
    // SAFETY: the session lives, and belongs to the handshake alone; OpenSSL copies the bytes. Without memory for them it has none.
    unsafe { SSL_SESSION_set1_ticket_appdata(session.as_ptr(), note.as_ptr().cast(), note.len()) };
}

/// The bytes that a session carries.
pub(crate) fn session_note(session: &SslSessionRef) -> &[u8] {
    let (mut bytes, mut len) = (ptr::null_mut(), 0);
    // SAFETY: the session lives, and is only read; its bytes live as long as it, and change while a handshake is made alone.
    unsafe {
        match SSL_SESSION_get0_ticket_appdata(session.as_ptr(), &mut bytes, &mut len) {
            1 if !bytes.is_null() => std::slice::from_raw_parts(bytes.cast::<u8>(), len),
            _ => &[],
        }
    }
}

/// Gives a session a name that no connection asks for.
pub(crate) fn end_session(session: &SslSessionRef) {
    let name = [0; 1];
    // SAFETY: the session lives, and belongs to the handshake alone; OpenSSL copies the name.
    unsafe { SSL_SESSION_set1_id_context(session.as_ptr(), name.as_ptr(), 1) };
}

/// The certificates that the other end has sent, its own first, while they are verified.
pub(crate) fn sent_certificates(chain: &X509StoreContextRef) -> Option<&StackRef<X509>> {
    // SAFETY: the chain lives while it is verified, and so do the sent certificates, which are not changed.
    unsafe {
        let sent = X509_STORE_CTX_get0_untrusted(chain.as_ptr());
        (!sent.is_null()).then(|| StackRef::from_ptr(sent))
    }
}

/// Sets the algorithms of signatures that clients may use, or that we use as a client.
pub(crate) fn set_client_signatures(context: &mut SslContextBuilder, list: &str) -> Result<(), ErrorStack> {
    let Ok(list) = CString::new(list) else { return Err(ErrorStack::get()) };
    // SAFETY: the context lives, and the text ends in NUL; OpenSSL reads it and keeps nothing of it.
    let done = unsafe { ffi::SSL_CTX_ctrl(context.as_ptr(), SSL_CTRL_SET_CLIENT_SIGALGS_LIST, 0, list.as_ptr().cast_mut().cast()) };
    if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// Sets the groups of a connection's key exchange, while its hello is being read.
pub(crate) fn set_groups(ssl: &mut SslRef, list: &str) -> Result<(), ErrorStack> {
    let Ok(list) = CString::new(list) else { return Err(ErrorStack::get()) };
    // SAFETY: the connection lives, and the text ends in NUL; OpenSSL reads it and keeps nothing of it.
    let done = unsafe { ffi::SSL_ctrl(ssl.as_ptr(), SSL_CTRL_SET_GROUPS_LIST, 0, list.as_ptr().cast_mut().cast()) };
    if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// Sets the lifetime of sessions.
pub(crate) fn set_session_lifetime(context: &mut SslContextBuilder, seconds: u32) {
    // SAFETY: the context lives; the call sets a number in it.
    unsafe { SSL_CTX_set_timeout(context.as_ptr(), c_long::from(seconds)) };
}

/// Calls `note` when a client wants to resume a session that is not remembered.
pub(crate) fn on_missing_session(context: &mut SslContextBuilder, note: fn()) {
    let find = move |_: &mut SslRef, _: &[u8]| {
        note();
        None
    };
    // SAFETY: a session that the callback gives must be of this context; it gives none.
    unsafe { context.set_get_session_callback(find) };
}

type TicketCallback = unsafe extern "C" fn(
    *mut ffi::SSL,
    *mut c_uchar,
    *mut c_uchar,
    *mut ffi::EVP_CIPHER_CTX,
    *mut ffi::EVP_MAC_CTX,
    c_int,
) -> c_int;

/// Makes and takes tickets with the keys that were lent to each connection, instead of keys that OpenSSL makes.
pub(crate) fn share_tickets(context: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    // SAFETY: the context lives, and the callback is a function.
    let done = unsafe { SSL_CTX_set_tlsext_ticket_key_evp_cb(context.as_ptr(), ticket) };
    if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// Prepares the cipher and the checksum of a ticket. -1: that failed; 0: the ticket's key is not known; 1: it is as it
/// should be; 2: the client gets another ticket, too.
unsafe extern "C" fn ticket(
    ssl: *mut ffi::SSL,
    name: *mut c_uchar,
    iv: *mut c_uchar,
    cipher: *mut ffi::EVP_CIPHER_CTX,
    mac: *mut ffi::EVP_MAC_CTX,
    makes: c_int,
) -> c_int {
    // SAFETY: OpenSSL calls this while it makes a handshake, with its connection.
    let ssl = unsafe { SslRef::from_ptr(ssl) };
    let Some(keys) = tickets::lent(ssl) else { return -1 };
    let ring = keys.ring();
    if makes != 0 {
        let (key, mut fresh) = (ring.current(), [0; IV_BYTES]);
        if openssl::rand::rand_bytes(&mut fresh).is_err() {
            return -1;
        }
        // SAFETY: there is room for a name of 16 bytes, as long as ours are, and for as long a vector as any cipher has.
        // Both contexts are OpenSSL's, made for this ticket.
        return unsafe {
            ptr::copy_nonoverlapping(key.name().as_ptr(), name, tickets::NAME_BYTES);
            ptr::copy_nonoverlapping(fresh.as_ptr(), iv, IV_BYTES);
            if prepare(cipher, mac, key, &fresh, true) { 1 } else { -1 }
        };
    }
    // SAFETY: both are parts of the ticket, as long as above; the slices end with this call.
    let (name, iv) = unsafe { (std::slice::from_raw_parts(name, tickets::NAME_BYTES), std::slice::from_raw_parts(iv, IV_BYTES)) };
    let Some((key, is_current)) = ring.find(name) else { return 0 };
    // A client of TLS 1.3 uses a ticket once (RFC 8446 section C.4).
    let lasts = is_current && ssl.version2() != Some(SslVersion::TLS1_3);
    // SAFETY: the contexts are as above.
    match unsafe { prepare(cipher, mac, key, iv, false) } {
        true if lasts => 1,
        true => 2,
        false => -1,
    }
}

/// SAFETY: to be called with living contexts.
unsafe fn prepare(
    cipher: *mut ffi::EVP_CIPHER_CTX,
    mac: *mut ffi::EVP_MAC_CTX,
    key: &TicketKey,
    iv: &[u8],
    encrypts: bool,
) -> bool {
    let (secret, checksum) = key.secrets();
    // SAFETY: the algorithms are constants of the library. OpenSSL copies keys as long as these algorithms have them, and a
    // vector that is long enough. It copies parameters up to their end, and writes none of them.
    unsafe {
        let algorithm = if secret.len() == 16 { ffi::EVP_aes_128_cbc() } else { ffi::EVP_aes_256_cbc() };
        let begin = if encrypts { ffi::EVP_EncryptInit_ex } else { ffi::EVP_DecryptInit_ex };
        let parameters = [
            ffi::OSSL_PARAM_construct_octet_string(c"key".as_ptr(), checksum.as_ptr().cast_mut().cast(), checksum.len()),
            OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), c"SHA256".as_ptr().cast_mut(), 0),
            ffi::OSSL_PARAM_construct_end(),
        ];
        begin(cipher, algorithm, ptr::null_mut(), secret.as_ptr(), iv.as_ptr()) == 1
            && ffi::EVP_MAC_CTX_set_params(mac, parameters.as_ptr()) == 1
    }
}

/// Overwrites bytes that must not be found in memory.
pub(crate) fn wipe(bytes: &mut [u8]) {
    // SAFETY: the call writes to these bytes alone.
    unsafe { OPENSSL_cleanse(bytes.as_mut_ptr().cast(), bytes.len()) };
}

/// Whether a session can be offered: those of TLS 1.3 can once.
pub(crate) fn is_resumable(session: &SslSessionRef) -> bool {
    // SAFETY: the session lives; the call reads from it.
    unsafe { SSL_SESSION_is_resumable(session.as_ptr()) == 1 }
}

/// Outcome of early data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EarlyStatus {
    /// Early data was not sent, or was refused.
    Refused,
    /// Early data was accepted.
    Accepted,
}

/// The outcome of the early data of a connection, once its handshake is made.
pub(crate) fn early_status(ssl: &SslRef) -> EarlyStatus {
    // SAFETY: the connection lives; the call reads a number from it.
    match unsafe { SSL_get_early_data_status(ssl.as_ptr()) } {
        SSL_EARLY_DATA_ACCEPTED => EarlyStatus::Accepted,
        _ => EarlyStatus::Refused,
    }
}

/// The options of a connection.
pub(crate) fn options(ssl: &SslRef) -> SslOptions {
    // SAFETY: the connection lives; the call reads a number from it.
    SslOptions::from_bits_retain(unsafe { SSL_get_options(ssl.as_ptr()) })
}

/// Forgets both ends' keys of the exchange, once the handshake is made. OpenSSL would hold them, ours with its secret, for
/// as long as the connection lives. An empty key is left in the place of each.
pub(crate) fn forget_exchange(ssl: &SslRef) {
    fn empty<T>(key: &PKeyRef<T>) {
        // SAFETY: the key lives. To set its type empties it. Only the connection has it, too, and OpenSSL uses such keys in
        // handshakes alone, each of which makes new ones.
        unsafe { EVP_PKEY_set_type(key.as_ptr(), ffi::NID_X25519) };
    }
    let _ = ssl.tmp_key().map(|key| empty(&key));
    let _ = ssl.peer_tmp_key().map(|key| empty(&key));
}

/// Adds a list of revoked certificates to a store.
pub(crate) fn add_revoked(store: &mut X509StoreBuilder, list: &X509CrlRef) -> Result<(), ErrorStack> {
    // SAFETY: both live; OpenSSL takes a reference of its own to the list.
    let done = unsafe { X509_STORE_add_crl(store.as_ptr(), list.as_ptr()) };
    if done > 0 { Ok(()) } else { Err(ErrorStack::get()) }
}

/// The version of a list of revoked certificates, and OpenSSL's number of the algorithm of its signature.
pub(crate) fn revoked_form(list: &X509CrlRef) -> (i64, Nid) {
    // SAFETY: the list lives; the calls read numbers from it.
    unsafe { (X509_CRL_get_version(list.as_ptr()) + 1, Nid::from_raw(X509_CRL_get_signature_nid(list.as_ptr()))) }
}

/// Offers a session of before.
pub(crate) fn resume(ssl: &mut SslRef, session: &SslSessionRef) -> Result<(), ErrorStack> {
    // SAFETY: callers give sessions that came from contexts of the same settings: a connector keeps only its own sessions.
    unsafe { ssl.set_session(session) }
}

/// An extension of the client's hello, while it is being read.
pub(crate) fn hello_extension(ssl: &mut SslRef, kind: u16) -> Option<&[u8]> {
    let (mut bytes, mut len): (*const c_uchar, usize) = (ptr::null(), 0);
    // SAFETY: the handshake lives, and is in its hello callback. The call writes places in the hello, which lives as long
    // as the callback, and so longer than the borrow of `ssl`.
    unsafe {
        let found = ffi::SSL_client_hello_get0_ext(ssl.as_ptr(), c_uint::from(kind), &mut bytes, &mut len);
        (found == 1 && !bytes.is_null()).then(|| std::slice::from_raw_parts(bytes, len))
    }
}

/// The group of the key exchange, by OpenSSL's name; `None` where keys were exchanged in another way.
pub(crate) fn group_name(ssl: &SslRef) -> Option<String> {
    // SAFETY: the connection lives; the first call reads a number from it. The second one gives a text that lives as long
    // as the context of the connection, and is copied at once.
    unsafe {
        let group = ffi::SSL_ctrl(ssl.as_ptr(), SSL_CTRL_GET_NEGOTIATED_GROUP, 0, ptr::null_mut());
        let name = match c_int::try_from(group) {
            Ok(group) if group != 0 => SSL_group_to_name(ssl.as_ptr(), group),
            _ => ptr::null(),
        };
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// Text of an answer about a certificate's state, over many lines.
pub(crate) fn answer_text(response: &OcspResponseRef) -> Option<String> {
    // SAFETY: the response lives, and is only read. The memory that it is written to is made and freed here, and its bytes
    // are copied before that.
    let text = unsafe { printed(|memory| OCSP_RESPONSE_print(memory, response.as_ptr(), 0) == 1) };
    text.map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// A distinguished name as RFC 2253 has it.
pub(crate) fn dn_rfc2253(name: &X509NameRef) -> Option<Vec<u8>> {
    // SAFETY: the name lives, and is only read; the memory that it is written to is made for it.
    unsafe { printed(|memory| X509_NAME_print_ex(memory, name.as_ptr(), 0, XN_FLAG_RFC2253) >= 0) }
}

/// The first certificate of a text in PEM, with the purposes that it is trusted for.
pub(crate) fn certificate_from_pem(text: &[u8]) -> Result<X509, ErrorStack> {
    let len = c_int::try_from(text.len()).map_err(|_| ErrorStack::get())?;
    // SAFETY: OpenSSL reads so many bytes, which live as long as this call, and keeps none of them; the new certificate is
    // ours.
    unsafe {
        let memory = ffi::BIO_new_mem_buf(text.as_ptr().cast(), len);
        if memory.is_null() {
            return Err(ErrorStack::get());
        }
        let certificate = PEM_read_bio_X509_AUX(memory, ptr::null_mut(), ptr::null(), ptr::null_mut());
        ffi::BIO_free_all(memory);
        if certificate.is_null() { Err(ErrorStack::get()) } else { Ok(X509::from_ptr(certificate)) }
    }
}

/// A certificate in DER, with the purposes that it is trusted for.
pub(crate) fn trusted_der(certificate: &X509Ref) -> Vec<u8> {
    // SAFETY: the certificate lives, and is only read; the second call writes as many bytes as the first one has counted.
    unsafe {
        let len = usize::try_from(i2d_X509_AUX(certificate.as_ptr(), ptr::null_mut())).unwrap_or_default();
        let mut der = vec![0; len];
        if len > 0 {
            i2d_X509_AUX(certificate.as_ptr(), &mut der.as_mut_ptr());
        }
        der
    }
}

/// An object identifier with dots.
pub(crate) fn dotted(object: &Asn1ObjectRef) -> Option<String> {
    let mut text = [0 as c_char; 256];
    // SAFETY: the object lives; the call writes at most so many bytes, and ends them with NUL.
    let len = unsafe { ffi::OBJ_obj2txt(text.as_mut_ptr(), text.len() as c_int, object.as_ptr(), 1) };
    let len = usize::try_from(len).ok().filter(|len| (1..text.len()).contains(len))?;
    Some(text[..len].iter().map(|digit| char::from(*digit as u8)).collect())
}

/// Bytes that a function writes into memory, if it succeeds.
///
/// SAFETY: to be called with a function that writes to the memory that it gets, and does not keep it.
unsafe fn printed(write: impl FnOnce(*mut ffi::BIO) -> bool) -> Option<Vec<u8>> {
    // SAFETY: the memory is made and freed here, and its bytes are copied before that.
    unsafe {
        let memory = ffi::BIO_new(ffi::BIO_s_mem());
        if memory.is_null() {
            return None;
        }
        let done = write(memory);
        let mut bytes: *mut c_char = ptr::null_mut();
        let len = ffi::BIO_get_mem_data(memory, &mut bytes);
        let len = usize::try_from(len).ok().filter(|_| done && !bytes.is_null());
        let text = len.map(|len| std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec());
        ffi::BIO_free_all(memory);
        // An error of this call must not be taken for one of the next read from a connection.
        drop(openssl::error::ErrorStack::get());
        text
    }
}

/// OpenSSL's text of an error.
pub(crate) fn error_text(error: c_ulong) -> String {
    let mut text = [0 as c_char; 256];
    // SAFETY: the call writes at most so many bytes, and ends them with NUL.
    unsafe {
        ERR_error_string_n(error, text.as_mut_ptr(), text.len());
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    }
}

/// `evp.h`: `EVP_MAX_IV_LENGTH`
const IV_BYTES: usize = 16;
/// `ssl.h`
const SSL_CTRL_CHAIN: c_int = 88;
const SSL_CTRL_SET_GROUPS_LIST: c_int = 92;
const SSL_CTRL_SET_CLIENT_SIGALGS_LIST: c_int = 102;
const SSL_CTRL_GET_NEGOTIATED_GROUP: c_int = 134;
const SSL_EARLY_DATA_ACCEPTED: c_int = 2;
/// `x509.h`
const XN_FLAG_RFC2253: c_ulong = 0x0111_0317;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;
    use crate::testing::{Kind, pair};
    use openssl::pkey::PKey;
    use openssl::ssl::{Ssl, SslContext, SslMethod, SslVersion};
    use openssl::x509::X509;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_connection_goes_on_without_the_keys_of_its_exchange() {
        let pair = pair(Kind::Ecdsa, "a.test", &[]);
        let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
        context.set_certificate(&X509::from_pem(&pair.certificate).unwrap()).unwrap();
        context.set_private_key(&PKey::private_key_from_pem(&pair.key).unwrap()).unwrap();
        let context = context.build();
        for version in [SslVersion::TLS1_2, SslVersion::TLS1_3] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let client = std::thread::spawn(move || {
                let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
                context.set_max_proto_version(Some(version)).unwrap();
                let mut stream = Ssl::new(&context.build()).unwrap().connect(theirs).unwrap();
                stream.write_all(b"ping").unwrap();
                let mut got = [0; 4];
                stream.read_exact(&mut got).unwrap();
                got
            });
            let mut stream = Ssl::new(&context).unwrap().accept(ours).unwrap();
            // Up to TLS 1.2 OpenSSL forgets its own by itself.
            assert_eq!(stream.ssl().tmp_key().is_ok_and(|key| key.raw_private_key().is_ok()), version == SslVersion::TLS1_3);
            forget_exchange(stream.ssl());
            assert!(!stream.ssl().tmp_key().is_ok_and(|key| key.raw_private_key().is_ok()));
            assert!(!stream.ssl().peer_tmp_key().is_ok_and(|key| key.raw_public_key().is_ok()));
            stream.read_exact(&mut [0; 4]).unwrap();
            stream.write_all(b"pong").unwrap();
            assert_eq!(&client.join().unwrap(), b"pong");
            assert!(group_name(stream.ssl()).is_some());
        }
    }
}
