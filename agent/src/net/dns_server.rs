//! Answers the DNS queries that are redirected to the agent, over UDP and TCP. The caller of `net.serve` decides about names.

use super::dns::answer::Answer;
use super::dns::query::{Parsed, Query, ResponseCode, parse};
use super::dns::record_type::RecordType;
use super::dns::reply_to::ReplyTo;
use super::guest_network::GuestNetwork;
use super::socket::reset_on_close;
use crate::os::{descriptor, read_into};
use std::cell::Cell;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longer than any query.
const MESSAGE_BYTES: usize = 4096;
/// How long a connection may rest between two queries.
const IDLE: Duration = Duration::from_secs(15);
const MAX_CONNECTIONS: usize = 64;

pub async fn serve_datagrams(network: Rc<GuestNetwork>, socket: UdpSocket) {
    let socket = Rc::new(socket);
    let mut buffer = vec![0; MESSAGE_BYTES];
    loop {
        // An error is about an earlier answer, whose receiver is gone.
        let Ok((size, program)) = socket.recv_from(&mut buffer).await else { continue };
        handle(&network, &buffer[..size], ReplyTo::Datagram(Rc::clone(&socket), program));
    }
}

#[derive(Default)]
pub struct Connections(Cell<usize>);

impl Connections {
    /// Serves queries one after the other. Each has its length in two bytes before it.
    pub async fn serve(&self, network: &GuestNetwork, socket: Rc<AsyncFd<OwnedFd>>) {
        if self.0.get() >= MAX_CONNECTIONS {
            return;
        }
        self.0.set(self.0.get() + 1);
        while let Ok(Ok(message)) = timeout(IDLE, read_message(&socket)).await {
            let (sender, answer) = oneshot::channel();
            handle(network, &message, ReplyTo::Connection(Cell::new(Some(sender))));
            let Ok(answer) = answer.await else { break };
            let framed = [&(answer.len() as u16).to_be_bytes()[..], &answer].concat();
            if write_all(&socket, &framed).await.is_err() {
                break;
            }
        }
        self.0.set(self.0.get() - 1);
        // The program may not have read the last answer yet.
        drop(reset_on_close(socket.as_raw_fd(), false));
    }
}

async fn read_message(socket: &AsyncFd<OwnedFd>) -> io::Result<Vec<u8>> {
    let length = read_exactly(socket, 2).await?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length > MESSAGE_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    read_exactly(socket, length).await
}

async fn read_exactly(socket: &AsyncFd<OwnedFd>, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        let mut ready = socket.readable().await?;
        let missing = size - bytes.len();
        match ready.try_io(|fd| read_into(fd.as_raw_fd(), &mut bytes, missing)) {
            Ok(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(outcome) => drop(outcome?),
            Err(_would_block) => {}
        }
    }
    Ok(bytes)
}

async fn write_all(socket: &AsyncFd<OwnedFd>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[descriptor::write_some(socket, bytes).await?..];
    }
    Ok(())
}

fn handle(network: &GuestNetwork, message: &[u8], reply_to: ReplyTo) {
    match parse(message) {
        Parsed::Ignored => {}
        Parsed::Faulty(echo, code) => reply_to.send(&echo, &Answer::Empty(code)),
        Parsed::Query(query) => match own_answer(network, &query) {
            Some(answer) => reply_to.send(&query.echo, &answer),
            None => match network.subscription() {
                Some(subscription) => subscription.add_query(network.new_id(), query, reply_to),
                None => reply_to.send(&query.echo, &Answer::Empty(ResponseCode::Refused)),
            },
        },
    }
}

/// The root has no addresses, and only the agent knows the names of stand-in addresses.
fn own_answer(network: &GuestNetwork, query: &Query) -> Option<Answer> {
    if query.name.is_empty() {
        return Some(Answer::Empty(ResponseCode::NoError));
    }
    if query.record_type != RecordType::PTR {
        return None;
    }
    let address = parse_reverse(&query.name)?;
    let name = network.stand_ins.borrow_mut().name_of(address)?;
    Some(Answer::Name(name.to_string()))
}

/// `7.0.18.198.in-addr.arpa`
fn parse_reverse(name: &str) -> Option<Ipv4Addr> {
    let address: Ipv4Addr = name.strip_suffix(".in-addr.arpa")?.parse().ok()?;
    let [a, b, c, d] = address.octets();
    Some(Ipv4Addr::new(d, c, b, a))
}
