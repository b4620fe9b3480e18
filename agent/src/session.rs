//! One caller on one channel: reads its frames, runs its calls, and ends them when it goes.

use crate::agent::Agent;
use crate::call::{Call, StreamState, canceled};
use crate::channel::{Reader, Writer};
use crate::error::{AgentError, Code};
use crate::frame::{Decoder, Frame};
use crate::limits::MAX_CALLS_IN_FLIGHT;
use crate::message::{self, CallId, Incoming};
use crate::methods;
use crate::outbox::Outbox;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tokio::task::{AbortHandle, spawn_local, yield_now};

/// Lines and small attachments; large ones are read where they belong.
const READ_BYTES: usize = 64 * 1024;

struct Running {
    stream: Rc<StreamState>,
    task: AbortHandle,
    /// Stopped early; its task is the one that says so.
    is_stopped: bool,
}

struct Session {
    agent: Rc<Agent>,
    outbox: Rc<Outbox>,
    calls: RefCell<HashMap<CallId, Running>>,
}

/// Serves a channel until it ends. An error is a channel that failed; the agent lives on.
pub async fn serve(agent: Rc<Agent>, reader: Reader, writer: Writer) -> std::io::Result<()> {
    let outbox = Outbox::new(Rc::clone(&agent.gate));
    let session = Rc::new(Session { agent, outbox: Rc::clone(&outbox), calls: RefCell::default() });
    let writing = spawn_local(async move { outbox.run(writer).await });
    let outcome = session.read(reader).await;
    session.cancel_all();
    writing.abort();
    outcome
}

impl Session {
    async fn read(self: &Rc<Self>, reader: Reader) -> std::io::Result<()> {
        let mut decoder = Decoder::default();
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            if reader.read(decoder.place(), &mut buffer, READ_BYTES).await? == 0 {
                return Ok(());
            }
            let mut input = &buffer[..];
            while let Some(next) = decoder.next(&mut input) {
                match next {
                    Ok(frame) => {
                        let has_attachment = frame.attachment.is_some();
                        self.handle(frame).await;
                        // Whoever gets the bytes deals with them before more are read: they are still in the cache,
                        // and their memory is the next ones'.
                        if has_attachment {
                            yield_now().await;
                        }
                    }
                    Err(fault) => {
                        let message = format!("skipped a malformed message: {}", fault.reason());
                        let error = AgentError::malformed(fault.rpc_code(), fault.reason(), message);
                        // Through the gate, since a reader that waited for it would never see the thaw.
                        self.outbox.answer_always(None, &Err(error)).await;
                    }
                }
            }
        }
    }

    async fn handle(self: &Rc<Self>, frame: Frame) {
        let Incoming { id, method, params } = match message::parse(frame.message) {
            Ok(incoming) => incoming,
            Err((id, error)) => return self.outbox.answer_always(id.as_ref(), &Err(error)).await,
        };
        match id {
            None => self.notified(&method, &params, frame.attachment),
            Some(id) => self.called(id, method, params, frame.attachment).await,
        }
    }

    /// Notifications about calls that have ended meanwhile are normal and ignored, like unknown ones.
    fn notified(self: &Rc<Self>, method: &str, params: &Map<String, Value>, attachment: Option<Vec<u8>>) {
        let Some(id) = params.get("call").and_then(|id| serde_json::from_value::<CallId>(id.clone()).ok()) else {
            return;
        };
        let Some(stream) = self.calls.borrow().get(&id).map(|running| Rc::clone(&running.stream)) else { return };
        match method {
            "stream.data" if stream.deliver(attachment.unwrap_or_default()) => {}
            "stream.data" => {
                let message = "more bytes than the agent had granted";
                self.stop(&id, AgentError::new(Code::ResourceExhausted, "window_exceeded", message));
            }
            "stream.end" => stream.end(),
            "stream.credit" => stream.add_credit(params.get("bytes").and_then(Value::as_u64).unwrap_or(0)),
            "cancel" => self.stop(&id, canceled()),
            _ => {}
        }
    }

    async fn called(
        self: &Rc<Self>,
        id: CallId,
        method: String,
        params: Map<String, Value>,
        attachment: Option<Vec<u8>>,
    ) {
        if method == "hello" {
            self.cancel_all();
            self.outbox.clear();
            self.agent.thaw();
        }
        if let Some(refusal) = self.refusal(&id, &method) {
            return self.outbox.answer_always(Some(&id), &Err(refusal)).await;
        }
        let always = methods::works_while_quiesced(&method);
        let call = Call::new(id.clone(), method, params, attachment, Rc::clone(&self.outbox));
        let stream = Rc::clone(&call.stream);
        let session = Rc::clone(self);
        let key = id.clone();
        let task = spawn_local(async move {
            let outbox = Rc::clone(&session.outbox);
            let outcome = methods::run(Rc::clone(&session.agent), call).await;
            if always {
                outbox.answer_always(Some(&id), &outcome).await;
            } else {
                outbox.answer(Some(&id), &outcome).await;
            }
            session.calls.borrow_mut().remove(&id);
        });
        self.calls.borrow_mut().insert(key, Running { stream, task: task.abort_handle(), is_stopped: false });
    }

    fn refusal(&self, id: &CallId, method: &str) -> Option<AgentError> {
        let calls = self.calls.borrow();
        if calls.contains_key(id) {
            let message = format!("call {} is not answered yet; every call needs an id of its own", id.to_json());
            return Some(AgentError::malformed(-32600, "duplicate_id", message));
        }
        if calls.len() >= MAX_CALLS_IN_FLIGHT {
            let message = format!("{MAX_CALLS_IN_FLIGHT} calls are unanswered on this channel");
            return Some(AgentError::new(Code::ResourceExhausted, "too_many_calls", message));
        }
        if !self.agent.gate.is_open() && !methods::works_while_quiesced(method) {
            return Some(AgentError::new(Code::Unavailable, "quiesced", "the agent is quiesced for a checkpoint"));
        }
        None
    }

    /// Ends a call early: dropping its task undoes what it had begun. Until its answer is sent it counts as unanswered.
    fn stop(self: &Rc<Self>, id: &CallId, error: AgentError) {
        let mut calls = self.calls.borrow_mut();
        let Some(running) = calls.get_mut(id).filter(|running| !running.is_stopped) else { return };
        running.task.abort();
        let (session, id) = (Rc::clone(self), id.clone());
        let answering = spawn_local(async move {
            session.outbox.answer(Some(&id), &Err(error)).await;
            session.calls.borrow_mut().remove(&id);
        });
        *running = Running { stream: Rc::default(), task: answering.abort_handle(), is_stopped: true };
    }

    fn cancel_all(&self) {
        for (_, running) in self.calls.borrow_mut().drain() {
            running.task.abort();
        }
    }
}
