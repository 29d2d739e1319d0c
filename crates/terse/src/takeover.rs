//! Taking the listening sockets over from the process before, without a moment in which a connection is refused or lost.
//!
//! ```text
//!        old process                              new process
//!   listens on L1..Ln                       reads its configuration
//!   hands L1..Ln over   <---- asks -------  (-x: stats socket; -sf, -st: by pid)
//!   still accepts       ---- L1..Ln ----->  opens what is missing beside them
//!   still accepts                           accepts as well
//!   drains (SIGUSR1) or stops (SIGTERM) <-  tells it to go, once all of the above has worked
//!   closes its descriptors                  L1..Ln live on
//! ```
//!
//! The reason for the same sockets: a connection that the kernel has established waits in the queue of one socket until it is
//! accepted, and dies with that socket. With `SO_REUSEPORT` there is one socket, and one queue, for each worker. If the old process
//! closed its own while the new one listened beside it, the connections that waited there would be reset. Passing the descriptor
//! passes the queue. When the old process closes its descriptor, the socket stays open in the new one, and the waiting connections
//! are accepted there.
//!
//! Hence the new process keeps all sockets if they are more than its workers ([`crate::sockets`]) and spreads them over its
//! workers. Closing one would lose its queue. If they are fewer it opens more beside them.
//!
//! The requests for them:
//! * [`receive`]: over the old process's stats socket, in HAProxy's protocol ([`protocol`]), so that terse takes over from HAProxy and
//!   HAProxy from terse.
//! * [`borrow`]: from a process that `-sf` or `-st` names, by `pidfd_getfd(2)`, where the kernel allows it (root, or the same user with
//!   the right to trace). Otherwise the old and the new sockets listen beside each other, as HAProxy's do without `-x`.
//!
//! The old process's side is [`send`], called by the command `_getsocks` of a stats socket with `expose-fd listeners`.

pub mod borrow;
pub mod protocol;
pub mod receive;
pub mod send;
