//! Where the answer to a query goes.

use super::answer::{Answer, encode};
use super::query::Echo;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;

pub enum ReplyTo {
    Datagram(Rc<UdpSocket>, SocketAddr),
    Connection(Cell<Option<oneshot::Sender<Vec<u8>>>>),
}

impl ReplyTo {
    pub fn send(&self, echo: &Echo, answer: &Answer) {
        let message = encode(echo, answer);
        match self {
            // A program repeats a query whose answer found no room.
            Self::Datagram(socket, program) => drop(socket.try_send_to(&message, *program)),
            Self::Connection(sender) => drop(sender.take().map(|sender| sender.send(message))),
        }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Datagram(_, one), Self::Datagram(_, other)) if one == other)
    }
}
