//! What waits for one caller of `net.serve`: flows and queries without a decision, and the lines that announce them. It ends
//! with the call; then each flow is reset and each query refused.

use super::dns::answer::Answer;
use super::dns::query::{Query, ResponseCode};
use super::dns::reply_to::ReplyTo;
use super::socket_owner::{self, Order, Owner};
use super::socket_table::{self, Row};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};

/// Further connections are reset.
const MAX_WAITING_FLOWS: usize = 256;
const MAX_WAITING_QUERIES: usize = 256;
/// Someone may be asked about a flow.
const FLOW_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Resolvers give up earlier.
const QUERY_PATIENCE: Duration = Duration::from_secs(30);
/// Announced at once. The rest can still be withdrawn.
const BATCH: usize = 32;
/// Processes and descriptors that the search for the owners of a batch may look at: about a millisecond under gVisor.
const MAX_LOOKS: usize = 64;
/// A search that takes longer, because there are many processes, is made only in a fraction of the time.
const QUICK_SEARCH: Duration = Duration::from_millis(2);
const SLOW_SEARCH_PAUSES: u32 = 10;

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    Ready {
        redirected: bool,
    },
    Flow {
        flow: u64,
        name: Option<String>,
        address: String,
        port: u16,
        pid: Option<u32>,
        program: Option<String>,
    },
    Query {
        query: u64,
        name: String,
        #[serde(rename = "type")]
        record_type: String,
    },
    Gone {
        flow: u64,
    },
    Datagram {
        address: Option<String>,
        port: Option<u16>,
        count: u64,
    },
}

/// A connection that was redirected to the agent. Closing the socket resets it.
pub struct Flow {
    pub socket: Rc<AsyncFd<OwnedFd>>,
    /// The program's end.
    pub source: SocketAddrV4,
    pub destination: SocketAddrV4,
    pub name: Option<Rc<str>>,
}

struct WaitingFlow {
    flow: Flow,
    is_announced: bool,
    watch: AbortHandle,
}

impl Drop for WaitingFlow {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

struct WaitingQuery {
    query: Query,
    reply_to: ReplyTo,
    since: Instant,
}

enum Announcement {
    Flow(u64),
    Query(u64),
    Gone(u64),
}

#[derive(Default)]
pub struct Subscription {
    flows: RefCell<HashMap<u64, WaitingFlow>>,
    queries: RefCell<HashMap<u64, WaitingQuery>>,
    announcements: RefCell<VecDeque<Announcement>>,
    datagrams: Cell<u64>,
    changed: Notify,
    /// Notified of each new flow and query.
    pub activity: Notify,
    is_replaced: Cell<bool>,
    next_search: Cell<Option<Instant>>,
}

impl Subscription {
    /// Resets the flow if too many wait.
    pub fn add_flow(self: &Rc<Self>, id: u64, flow: Flow) {
        if self.flows.borrow().len() >= MAX_WAITING_FLOWS {
            return;
        }
        let (subscription, socket) = (Rc::downgrade(self), Rc::clone(&flow.socket));
        let watch = spawn_local(async move {
            // A program that only ends its own direction may still wait for an answer; an error means that it is gone.
            let _ = tokio::time::timeout(FLOW_PATIENCE, socket.ready(Interest::ERROR)).await;
            if let Some(subscription) = subscription.upgrade() {
                subscription.flow_gone(id);
            }
        });
        let waiting = WaitingFlow { flow, is_announced: false, watch: watch.abort_handle() };
        self.flows.borrow_mut().insert(id, waiting);
        self.announce(Announcement::Flow(id));
        self.activity.notify_one();
    }

    pub fn take_flow(&self, id: u64) -> Option<Rc<AsyncFd<OwnedFd>>> {
        self.flows.borrow_mut().remove(&id).map(|waiting| Rc::clone(&waiting.flow.socket))
    }

    /// A program may repeat a query that waits: only the first is kept.
    pub fn add_query(&self, id: u64, query: Query, reply_to: ReplyTo) {
        let mut queries = self.queries.borrow_mut();
        queries.retain(|_, waiting| waiting.since.elapsed() < QUERY_PATIENCE);
        if queries.values().any(|waiting| waiting.query == query && waiting.reply_to.is_same(&reply_to)) {
            return;
        }
        if queries.len() >= MAX_WAITING_QUERIES {
            return reply_to.send(&query.echo, &Answer::Empty(ResponseCode::ServerFailure));
        }
        queries.insert(id, WaitingQuery { query, reply_to, since: Instant::now() });
        drop(queries);
        self.announce(Announcement::Query(id));
        self.activity.notify_one();
    }

    /// The caller's decision about a query; nothing happens if it no longer waits.
    pub fn answer(&self, id: u64, answer: impl FnOnce(&Query) -> Answer) {
        let Some(WaitingQuery { query, reply_to, .. }) = self.queries.borrow_mut().remove(&id) else { return };
        reply_to.send(&query.echo, &answer(&query));
    }

    pub fn add_datagrams(&self, count: u64) {
        self.datagrams.set(self.datagrams.get() + count);
        self.changed.notify_one();
    }

    /// A newer call takes over.
    pub fn replace(&self) {
        self.is_replaced.set(true);
        self.changed.notify_one();
    }

    /// Waits for lines to send; None once the subscription is replaced.
    pub async fn next_lines(&self) -> Option<Vec<Line>> {
        loop {
            if self.is_replaced.get() {
                return None;
            }
            let lines = self.take_lines();
            if !lines.is_empty() {
                return Some(lines);
            }
            self.changed.notified().await;
        }
    }

    fn flow_gone(&self, id: u64) {
        let Some(waiting) = self.flows.borrow_mut().remove(&id) else { return };
        if waiting.is_announced {
            self.announce(Announcement::Gone(id));
        } else {
            let is_other = |queued: &Announcement| !matches!(queued, Announcement::Flow(flow) if *flow == id);
            self.announcements.borrow_mut().retain(is_other);
        }
    }

    fn announce(&self, announcement: Announcement) {
        self.announcements.borrow_mut().push_back(announcement);
        self.changed.notify_one();
    }

    fn take_lines(&self) -> Vec<Line> {
        let mut announcements = self.announcements.borrow_mut();
        let size = announcements.len().min(BATCH);
        let batch: Vec<_> = announcements.drain(..size).collect();
        drop(announcements);
        let mut owners = self.owners(&batch);
        let mut lines: Vec<_> = batch.iter().filter_map(|queued| self.line(queued, &mut owners)).collect();
        let count = self.datagrams.take();
        if count > 0 {
            lines.push(Line::Datagram { address: None, port: None, count });
        }
        lines
    }

    fn line(&self, queued: &Announcement, owners: &mut HashMap<u64, Owner>) -> Option<Line> {
        match queued {
            Announcement::Flow(id) => {
                let mut flows = self.flows.borrow_mut();
                let waiting = flows.get_mut(id)?;
                waiting.is_announced = true;
                let owner = owners.remove(id);
                Some(Line::Flow {
                    flow: *id,
                    name: waiting.flow.name.as_deref().map(String::from),
                    address: waiting.flow.destination.ip().to_string(),
                    port: waiting.flow.destination.port(),
                    pid: owner.as_ref().map(|owner| owner.pid),
                    program: owner.and_then(|owner| owner.program),
                })
            }
            Announcement::Query(id) => {
                let queries = self.queries.borrow();
                let query = &queries.get(id)?.query;
                Some(Line::Query { query: *id, name: query.name.clone(), record_type: query.record_type.to_string() })
            }
            Announcement::Gone(id) => Some(Line::Gone { flow: *id }),
        }
    }

    /// The processes of new flows, as far as they are found quickly: one search for all of a batch.
    fn owners(&self, batch: &[Announcement]) -> HashMap<u64, Owner> {
        let flows = self.flows.borrow();
        let ends: HashMap<_, _> = batch
            .iter()
            .filter_map(|queued| if let Announcement::Flow(id) = queued { Some((*id, flows.get(id)?)) } else { None })
            .map(|(id, waiting)| ((waiting.flow.source.into(), waiting.flow.destination.into()), id))
            .collect();
        let started = Instant::now();
        if ends.is_empty() || self.next_search.get().is_some_and(|next| started < next) {
            return HashMap::new();
        }
        let is_wanted = |row: &Row| ends.contains_key(&(row.local, row.remote));
        let mut rows: Vec<Row> = socket_table::tcp_v4().unwrap_or_default().into_iter().filter(is_wanted).collect();
        if rows.len() < ends.len() {
            rows.extend(socket_table::tcp_v6().into_iter().filter(is_wanted));
        }
        let sockets: Vec<_> = rows.iter().map(Row::socket).collect();
        let mut found = socket_owner::find(&sockets, Order::NewestFirst, MAX_LOOKS);
        let took = started.elapsed();
        self.next_search.set((took > QUICK_SEARCH).then(|| started + took * SLOW_SEARCH_PAUSES));
        let owner = |row: &Row| Some((*ends.get(&(row.local, row.remote))?, found.remove(&row.inode)?));
        rows.iter().filter_map(owner).collect()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for (_, WaitingQuery { query, reply_to, .. }) in self.queries.get_mut().drain() {
            reply_to.send(&query.echo, &Answer::Empty(ResponseCode::Refused));
        }
    }
}
