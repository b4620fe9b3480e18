//! The redirection in a network namespace of each test's own thread.

use sandpiper_agent::redirect::{self, ADDRESS, CLOSED_PORT, DNS_PORT, TCP_PORT};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const TIMEOUT: Duration = Duration::from_secs(20);

/// False without the privilege to make a network namespace.
fn enter_namespace() -> bool {
    // SAFETY: a plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("SKIP: a network namespace needs root");
        return false;
    }
    redirect::enter_namespace().unwrap();
    true
}

fn original_destination(stream: &TcpStream) -> SocketAddrV4 {
    const SO_ORIGINAL_DST: libc::c_int = 80;
    // SAFETY: the structure is writable and has the length that is passed.
    let address = unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let at = (&raw mut address).cast();
        assert_eq!(libc::getsockopt(stream.as_raw_fd(), libc::SOL_IP, SO_ORIGINAL_DST, at, &raw mut length), 0);
        address
    };
    SocketAddrV4::new(u32::from_be(address.sin_addr.s_addr).into(), u16::from_be(address.sin_port))
}

fn connected_datagrams(to: impl Into<SocketAddr>) -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket.connect(to.into()).unwrap();
    socket
}

#[test]
fn a_connection_to_any_address_and_port_arrives_with_its_destination() {
    if !enter_namespace() {
        return;
    }
    let listener = TcpListener::bind(("127.0.0.1", TCP_PORT)).unwrap();
    for to in [
        SocketAddrV4::new(ELSEWHERE, 443),
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 3), 53),
        SocketAddrV4::new(Ipv4Addr::new(169, 254, 169, 254), 80),
    ] {
        let mut client = TcpStream::connect(to).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert_eq!(original_destination(&server), to);
        server.write_all(b"hello").unwrap();
        let mut received = [0; 5];
        client.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"hello");
        assert_eq!(client.peer_addr().unwrap(), to.into());
    }
}

#[test]
fn an_ipv4_address_in_ipv6_form_is_redirected_and_ipv6_leads_nowhere() {
    if !enter_namespace() {
        return;
    }
    let listener = TcpListener::bind(("127.0.0.1", TCP_PORT)).unwrap();
    let _client = TcpStream::connect((ELSEWHERE.to_ipv6_mapped(), 443)).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert_eq!(original_destination(&server), SocketAddrV4::new(ELSEWHERE, 443));
    assert!(TcpStream::connect("[2001:db8::1]:443").is_err());
}

#[test]
fn a_connection_to_the_agents_port_shows_that_port_as_its_destination() {
    if !enter_namespace() {
        return;
    }
    let listener = TcpListener::bind(("127.0.0.1", TCP_PORT)).unwrap();
    let _client = TcpStream::connect(("127.0.0.1", TCP_PORT)).unwrap();
    let (server, _) = listener.accept().unwrap();
    assert_eq!(original_destination(&server), SocketAddrV4::new(Ipv4Addr::LOCALHOST, TCP_PORT));
}

#[test]
fn a_connection_is_refused_while_nothing_listens() {
    if !enter_namespace() {
        return;
    }
    assert_eq!(TcpStream::connect((ELSEWHERE, 443)).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn connections_and_datagrams_inside_stay_as_they_are() {
    if !enter_namespace() {
        return;
    }
    for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 53), ADDRESS] {
        let listener = TcpListener::bind((address, 8080)).unwrap();
        TcpStream::connect((address, 8080)).unwrap();
        listener.accept().unwrap();
        let server = UdpSocket::bind((address, 53)).unwrap();
        connected_datagrams((address, 53)).send(b"query").unwrap();
        assert_eq!(server.recv(&mut [0; 8]).unwrap(), 5);
    }
}

#[test]
fn a_query_to_any_name_server_arrives_and_its_answer_comes_from_that_server() {
    if !enter_namespace() {
        return;
    }
    let server = UdpSocket::bind(("127.0.0.1", DNS_PORT)).unwrap();
    for name_server in [ELSEWHERE, Ipv4Addr::new(10, 0, 2, 3)] {
        // A connected socket drops what comes from another address.
        let client = connected_datagrams((name_server, 53));
        client.send(b"query").unwrap();
        let mut received = [0; 8];
        let (size, from) = server.recv_from(&mut received).unwrap();
        assert_eq!(&received[..size], b"query");
        server.send_to(b"answer", from).unwrap();
        assert_eq!(client.recv(&mut received).unwrap(), 6);
    }
}

#[test]
fn other_datagrams_are_refused_at_once() {
    if !enter_namespace() {
        return;
    }
    let client = connected_datagrams((ELSEWHERE, 443));
    client.send(b"quic").unwrap();
    assert_eq!(client.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    const { assert!(CLOSED_PORT < 1024, "a user could receive the datagrams of others") };
}

#[test]
fn a_second_set_up_changes_nothing() {
    if !enter_namespace() {
        return;
    }
    redirect::set_up().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", TCP_PORT)).unwrap();
    let _client = TcpStream::connect((ELSEWHERE, 443)).unwrap();
    assert_eq!(original_destination(&listener.accept().unwrap().0), SocketAddrV4::new(ELSEWHERE, 443));
}

#[test]
fn what_leaves_by_another_device_stays_as_it_is() {
    if !enter_namespace() {
        return;
    }
    let add = "ip link add engine type veth && ip addr add 172.17.0.1/16 dev engine && ip link set engine up";
    assert!(Command::new("sh").args(["-c", add]).status().unwrap().success());
    let _agent = TcpListener::bind(("127.0.0.1", TCP_PORT)).unwrap();
    // Nothing answers there.
    let container = SocketAddrV4::new(Ipv4Addr::new(172, 17, 0, 2), 80);
    assert!(TcpStream::connect_timeout(&container.into(), Duration::from_millis(100)).is_err());
}
