//! Sockets of `log-forward` sections: streams are opened like those of every `bind`, datagrams here.

use crate::configuration::Configuration;
use crate::listening::listener;
use crate::process::sys;
use crate::sockets::Listening;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::UdpSocket;
use terse_proxy::log::{DatagramBind, Forwarder, Intake, IntakeSocket};
use terse_proxy::plan::Plan;
use terse_proxy::settings::BindSettings;

/// The `bind` lines of all sections, in order, each with the index of its section.
pub fn binds(plan: &Plan) -> impl Iterator<Item = (usize, &Forwarder, &BindSettings)> {
    let forwarders = plan.syslog.forwarders.iter().enumerate();
    forwarders.flat_map(|(index, forwarder)| forwarder.settings.binds.iter().map(move |bind| (index, &**forwarder, bind)))
}

/// Takes the sockets of the sections' `bind` lines out of those that were opened, and opens those of their `dgram-bind` lines.
///
/// # Errors
/// Every address that cannot be had.
pub fn take(configuration: &Configuration, sockets: &mut Vec<Listening>) -> Result<Vec<Intake>, Vec<String>> {
    let plan = &configuration.plan;
    let first = plan.binds().len() + configuration.admin.sockets.len();
    let forwarders = plan.syslog.forwarders.iter().enumerate();
    let owners: Vec<_> = forwarders.flat_map(|(index, own)| (0..own.settings.binds.len()).map(move |bind| (index, bind))).collect();
    let own = sockets.extract_if(.., |listening| listening.line >= first);
    let streams = own.filter_map(|listening| {
        let (forwarder, bind) = *owners.get(listening.line - first)?;
        Some(Intake { forwarder, socket: IntakeSocket::Streams(listener(listening), bind) })
    });
    let mut intakes: Vec<Intake> = streams.collect();
    let mut refusals = Vec::new();
    for (forwarder, section) in plan.syslog.forwarders.iter().enumerate() {
        for bind in &section.settings.datagrams {
            match open(bind) {
                Ok(socket) => intakes.push(Intake { forwarder, socket: IntakeSocket::Datagrams(socket) }),
                Err(error) => {
                    let (place, name) = (&bind.place, &section.name);
                    refusals.push(format!(
                        "Binding [{}:{}] for log-forward {name}: cannot bind socket ({error}) for [{}]",
                        place.file, place.line, bind.address
                    ));
                }
            }
        }
    }
    if refusals.is_empty() { Ok(intakes) } else { Err(refusals) }
}

fn open(bind: &DatagramBind) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(bind.address), Type::DGRAM.nonblocking().cloexec(), None)?;
    socket.set_reuse_address(true)?;
    // A process that replaces this one binds the same address while this one still listens.
    socket.set_reuse_port(true)?;
    if let Some(interface) = &bind.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    if bind.transparent {
        sys::set_transparent(&socket, bind.address.is_ipv6())?;
    }
    // A burst waits in the kernel while the courier writes; a system that gives less serves as well.
    let _ = socket.set_recv_buffer_size(RECEIVE_BYTES);
    socket.bind(&bind.address.into())?;
    Ok(socket.into())
}

/// Some thousand messages of the usual length.
const RECEIVE_BYTES: usize = 1 << 20;
