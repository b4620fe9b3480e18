//! A socket whose newest connection is the channel. A virtual machine loses its connections when it resumes from a save.
//! The agent is quiesced then and no frame is in transit, so the session survives and continues on the next connection.

use super::{listen, session};
use crate::agent::Agent;
use crate::os::{descriptor, log};
use crate::wire::byte_stream::{ReadInto, Reader, Writer, split};
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_local;

const BUFFER_BYTES: usize = 64 * 1024;

/// The near end of a socket pair whose far end is a session's.
type SessionEnd = (Reader, Writer);

pub async fn serve(agent: Rc<Agent>, listener: OwnedFd) -> io::Result<()> {
    let listener = descriptor::watch(listener, Interest::READABLE)?;
    let mut connection = listen::next(&listener).await?;
    let mut kept = None;
    loop {
        let session = match kept.take() {
            Some(session) => session,
            None => begin(Rc::clone(&agent))?,
        };
        let newer = copy_both_ways(&session, connection, &listener).await?;
        // Dropping its end ends a session and its calls.
        kept = (!agent.gate.is_open()).then_some(session);
        connection = match newer {
            Some(newer) => newer,
            None => listen::next(&listener).await?,
        };
    }
}

fn begin(agent: Rc<Agent>) -> io::Result<SessionEnd> {
    let (near, far) = UnixStream::pair()?;
    let (reader, writer) = split(far.into())?;
    spawn_local(async move {
        if let Err(error) = session::serve(agent, reader, writer).await {
            log::warn(format_args!("a session failed: {error}"));
        }
    });
    split(near.into())
}

/// Returns when the connection ends, or with the newer one that replaces it.
async fn copy_both_ways(
    (from_session, to_session): &SessionEnd,
    connection: OwnedFd,
    listener: &AsyncFd<OwnedFd>,
) -> io::Result<Option<OwnedFd>> {
    let (from_host, to_host) = split(connection)?;
    let (mut inward, mut outward) = (pin!(copy(&from_host, to_session)), pin!(copy(from_session, &to_host)));
    let mut newer = pin!(listen::next(listener));
    poll_fn(|context| {
        if let Poll::Ready(accepted) = newer.as_mut().poll(context) {
            return Poll::Ready(accepted.map(Some));
        }
        let has_ended = inward.as_mut().poll(context).is_ready() || outward.as_mut().poll(context).is_ready();
        if has_ended { Poll::Ready(Ok(None)) } else { Poll::Pending }
    })
    .await
}

/// The caller treats an error like the end of the connection.
async fn copy(from: &Reader, to: &Writer) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let nothing = ReadInto { bytes: &mut Vec::new(), room: 0 };
        if from.read(nothing, &mut buffer, BUFFER_BYTES).await? == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..];
        while !rest.is_empty() {
            let written = to.write_vectored(&[IoSlice::new(rest)]).await?;
            rest = &rest[written..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::serve;
    use crate::agent::Agent;
    use crate::args;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};
    use std::time::Duration;
    use tokio::task::LocalSet;

    /// Serves until the callers, which run on their own thread, are done.
    fn with_agent(name: &str, callers: impl FnOnce(PathBuf) + Send + 'static) {
        let path = std::env::temp_dir().join(format!("sandpiper-newest-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let place = path.clone();
        let calling = std::thread::spawn(move || callers(place));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let agent = Agent::new(args::parse(std::iter::empty()).unwrap(), None);
            let serving = tokio::task::spawn_local(serve(agent, listener.into()));
            while !calling.is_finished() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            serving.abort();
        });
        std::fs::remove_file(&path).unwrap();
        calling.join().unwrap();
    }

    fn connect(path: &Path) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        BufReader::new(stream)
    }

    fn send(caller: &mut BufReader<UnixStream>, id: u32, method: &str, params: &str) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        caller.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line; empty at the end.
    fn receive(caller: &mut BufReader<UnixStream>) -> String {
        let mut line = String::new();
        caller.read_line(&mut line).unwrap();
        line
    }

    fn receive_until(caller: &mut BufReader<UnixStream>, text: &str) {
        loop {
            let line = receive(caller);
            assert_ne!(line, "", "the connection ended before {text} arrived");
            if line.contains(text) {
                return;
            }
        }
    }

    #[test]
    fn continues_a_quiesced_session_on_the_next_connection() {
        with_agent("quiesced", |path| {
            let watched = path.with_extension("watched");
            std::fs::create_dir_all(&watched).unwrap();
            let mut first = connect(&path);
            let params = format!(r#"{{"path":"{}","window":65536}}"#, watched.display());
            send(&mut first, 1, "file.watch", &params);
            send(&mut first, 2, "ping", "{}");
            receive_until(&mut first, r#""id":2"#);
            send(&mut first, 3, "system.quiesce", "{}");
            receive_until(&mut first, r#""id":3"#);
            drop(first);
            let mut second = connect(&path);
            send(&mut second, 4, "system.thaw", "{}");
            assert!(receive(&mut second).contains(r#""id":4"#));
            // The watch of the first connection reports on the second.
            std::fs::write(watched.join("made-later"), "").unwrap();
            receive_until(&mut second, "made-later");
            std::fs::remove_dir_all(&watched).unwrap();
        });
    }

    #[test]
    fn ends_a_running_session_with_its_connection() {
        with_agent("ends", |path| {
            let mut first = connect(&path);
            send(&mut first, 1, "ping", "{}");
            receive(&mut first);
            first.get_mut().write_all(br#"{"jsonrpc":"2.0","half a"#).unwrap();
            drop(first);
            let mut second = connect(&path);
            send(&mut second, 2, "ping", "{}");
            assert!(receive(&mut second).contains(r#""id":2"#));
        });
    }

    #[test]
    fn closes_the_connection_when_a_newer_one_arrives() {
        with_agent("newer", |path| {
            let mut first = connect(&path);
            send(&mut first, 1, "ping", "{}");
            receive(&mut first);
            let mut second = connect(&path);
            assert_eq!(receive(&mut first), "");
            send(&mut second, 2, "ping", "{}");
            assert!(receive(&mut second).contains(r#""id":2"#));
        });
    }
}
