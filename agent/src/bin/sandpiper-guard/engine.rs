use crate::lease::Engine;
use serde::Deserialize;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The longest wait for each step of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A list of a few containers.
const MAX_ANSWER_BYTES: u64 = 1024 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Container {
    id: String,
}

/// Kills the running containers of a sandbox. True when there were none.
pub fn kill(engine: &Engine, id: &str, home: &str) -> io::Result<bool> {
    let labels = format!(r#"{{"label":["sandpiper.sandbox={id}","sandpiper.home={home}"]}}"#);
    let filters: String = labels.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (status, body) = request(engine, "GET", &format!("/containers/json?filters={filters}"))?;
    if status != 200 {
        return Err(io::Error::other(format!("the engine answered {status}")));
    }
    let containers: Vec<Container> = serde_json::from_slice(&body)?;
    for Container { id } in &containers {
        // The engine answers when the container has ended. The next list shows one that could not be killed.
        request(engine, "POST", &format!("/containers/{id}/kill?signal=SIGKILL"))?;
    }
    Ok(containers.is_empty())
}

/// Whether a process listens on the engine's socket. An engine on another machine may run unseen.
pub fn is_running(engine: &Engine) -> bool {
    let gone = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
    !engine.address.starts_with('/')
        || !UnixStream::connect(&engine.address).is_err_and(|error| gone.contains(&error.kind()))
}

/// Uses HTTP 1.0, so that the answer ends with the connection.
fn request(engine: &Engine, method: &str, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let Engine { address, api_version } = engine;
    let mut stream = connect(address)?;
    let head = format!("{method} /v{api_version}{path} HTTP/1.0\r\nHost: engine\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::other("the engine's answer is not HTTP"))
}

fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let head_bytes = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let status = str::from_utf8(&answer[..head_bytes]).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer[head_bytes + 4..].to_vec()))
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(address: &str) -> io::Result<Box<dyn Stream>> {
    if address.starts_with('/') {
        let stream = UnixStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        return Ok(Box::new(stream));
    }
    let mut failure = io::Error::other("the engine's name has no address");
    for resolved in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                return Ok(Box::new(stream));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// An engine that gives these answers, and records the first line of each request.
    fn engine(answers: Vec<&'static str>) -> (Engine, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = thread::spawn(move || {
            answers
                .into_iter()
                .map(|answer| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut text = [0; 4096];
                    let count = stream.read(&mut text).unwrap();
                    stream.write_all(answer.as_bytes()).unwrap();
                    String::from_utf8_lossy(&text[..count]).lines().next().unwrap().to_string()
                })
                .collect()
        });
        (Engine { address, api_version: "1.51".to_string() }, serving)
    }

    #[test]
    fn kills_the_listed_containers_by_their_own_ids() {
        let list = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"Id\":\"c0ffee\",\"Names\":[]}]";
        let (engine, serving) = engine(vec![list, "HTTP/1.0 204 No Content\r\n\r\n"]);
        assert!(!kill(&engine, "abc", "0a1b").unwrap());
        let requests = serving.join().unwrap();
        assert!(requests[0].starts_with("GET /v1.51/containers/json?filters=%7B%22%6C%61%62%65%6C%22"));
        assert_eq!(requests[1], "POST /v1.51/containers/c0ffee/kill?signal=SIGKILL HTTP/1.0");
    }

    #[test]
    fn finds_nothing_to_kill_in_an_empty_list() {
        let (engine, _serving) = engine(vec!["HTTP/1.0 200 OK\r\n\r\n[]\n"]);
        assert!(kill(&engine, "abc", "0a1b").unwrap());
    }

    #[test]
    fn an_engine_without_a_socket_does_not_run() {
        let at = |address: &str| Engine { address: address.to_string(), api_version: "1.51".to_string() };
        assert!(!is_running(&at("/nonexistent/engine.sock")));
        assert!(is_running(&at("192.0.2.1:2375")));
    }

    #[test]
    fn does_not_take_an_error_for_an_empty_list() {
        let (engine, _serving) = engine(vec!["HTTP/1.0 500 Internal Server Error\r\n\r\n[]"]);
        assert!(kill(&engine, "abc", "0a1b").is_err());
    }
}
