//! The field Forwarded (RFC 7239): `option forwarded`.

use crate::stream::Stream;
use std::net::SocketAddr;
use terse_message::Known;
use terse_sample::convert::forwarded::{is_host, written_name, written_port};
use terse_sample::{Env, Expr, Value};

/// The parameters of an element; `None`: the parameter is not sent.
#[derive(Clone, Default)]
pub struct Forwarded {
    /// `proto`
    pub proto: bool,
    /// `host`, `host-expr`
    pub host: Option<Told>,
    /// `by`, `by-expr`, `by_port`, `by_port-expr`: the address that the client connected to.
    pub by: Option<Node>,
    /// `for`, `for-expr`, `for_port`, `for_port-expr`: the client.
    pub client: Option<Node>,
}

/// A node.
#[derive(Clone)]
pub struct Node {
    /// Its name.
    pub name: Told,
    /// Its port.
    pub port: Option<Told>,
}

/// Source of a parameter's value.
#[derive(Clone)]
pub enum Told {
    /// From the connection, or the request.
    Known,
    /// From an expression.
    Found(Box<Expr>),
}

impl Forwarded {
    /// The option without arguments: the values of X-Forwarded-For and X-Forwarded-Proto.
    pub fn usual() -> Forwarded {
        let client = Some(Node { name: Told::Known, port: None });
        Forwarded { proto: true, client, ..Forwarded::default() }
    }

    /// Adds the element to the stream's request. A list may be written as several fields: elements of others stay as they
    /// came.
    pub fn tell(&self, stream: &mut Stream) {
        let element = self.element(stream);
        stream.request.fields.push(b"Forwarded", &element);
    }

    fn element(&self, stream: &Stream) -> Vec<u8> {
        let (env, facts) = (stream.env(), &stream.facts);
        let mut parts: Vec<Vec<u8>> = Vec::new();
        if self.proto {
            parts.push(b"proto=http".to_vec());
        }
        if let Some(told) = &self.host {
            let host = match told {
                Told::Known => stream.request.fields.get(Known::Host.name().as_bytes()).map(<[u8]>::to_vec),
                Told::Found(expression) => expression.eval(&env).and_then(Value::into_octets).map(|text| text.to_vec()),
            };
            parts.push([b"host=\"", &host.filter(|host| is_host(host)).unwrap_or_default()[..], b"\""].concat());
        }
        for (name, node, address) in [("by", &self.by, facts.local), ("for", &self.client, facts.client)] {
            if let Some(node) = node {
                parts.push([name.as_bytes(), b"=", &node.written(address, &env)].concat());
            }
        }
        parts.join(&b';')
    }
}

impl Node {
    /// In quotes where a colon is in it.
    fn written(&self, address: Option<SocketAddr>, env: &Env<'_>) -> Vec<u8> {
        let name = match &self.name {
            Told::Known => address.and_then(|address| written_name(Value::Addr(address.ip()))),
            Told::Found(expression) => expression.eval(env).and_then(written_name),
        };
        let name = name.as_deref().unwrap_or(b"unknown");
        let Some(port) = &self.port else {
            return if name.starts_with(b"[") { [b"\"", name, b"\""].concat() } else { name.to_vec() };
        };
        let port = match port {
            Told::Known => address.and_then(|address| written_port(Value::Int(address.port().into()))),
            Told::Found(expression) => expression.eval(env).and_then(written_port),
        };
        match port {
            Some(port) => [b"\"", name, b":", &port, b"\""].concat(),
            None => [b"\"", name, b"\""].concat(),
        }
    }
}
