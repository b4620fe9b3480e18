//! One caller on one channel: reads its frames, runs its calls, and cancels them when it disconnects.

use crate::agent::Agent;
use crate::calls::call::{Call, StreamState, canceled};
use crate::calls::outbox::Outbox;
use crate::error::{AgentError, Code};
use crate::methods;
use crate::wire::byte_stream::{Reader, Writer};
use crate::wire::frame::{Decoder, Frame};
use crate::wire::limits::MAX_CALLS_IN_FLIGHT;
use crate::wire::message::{self, CallId, Request};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use tokio::task::{AbortHandle, spawn_local, yield_now};

/// For lines and small attachments. The decoder gets large attachments directly.
const READ_BYTES: usize = 64 * 1024;

struct Running {
    stream: Rc<StreamState>,
    task: AbortHandle,
    /// Its task sends the answer of a call that was stopped early.
    is_stopped: bool,
}

struct Session {
    agent: Rc<Agent>,
    outbox: Rc<Outbox>,
    calls: RefCell<HashMap<CallId, Running>>,
}

/// Serves a channel until it ends or fails.
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
            if reader.read(decoder.missing(), &mut buffer, READ_BYTES).await? == 0 {
                return Ok(());
            }
            let mut input = &buffer[..];
            while let Some(next) = decoder.next(&mut input) {
                match next {
                    Ok(frame) => {
                        let has_attachment = frame.attachment.is_some();
                        self.handle(frame).await;
                        // Lets the receiver process the bytes first: they are still in the CPU cache, and the next
                        // attachment can reuse their memory.
                        if has_attachment {
                            yield_now().await;
                        }
                    }
                    Err(fault) => {
                        let message = format!("skipped a malformed message: {}", fault.reason());
                        let error = AgentError::malformed(fault.rpc_code(), fault.reason(), message);
                        // A reader that waited for the gate would never read the thaw.
                        self.outbox.answer_always(None, &Err(error)).await;
                    }
                }
            }
        }
    }

    async fn handle(self: &Rc<Self>, frame: Frame) {
        match message::parse(frame.message) {
            Ok((None, request)) => self.notified(&request, frame.attachment),
            Ok((Some(id), request)) => self.called(id, request, frame.attachment).await,
            Err((id, error)) => self.outbox.answer_always(id.as_ref(), &Err(error)).await,
        }
    }

    /// Ignores unknown notifications, and those about calls that have ended.
    fn notified(self: &Rc<Self>, Request { method, params }: &Request, attachment: Option<Vec<u8>>) {
        let Some(id) = params.get("call").and_then(|id| serde_json::from_value::<CallId>(id.clone()).ok()) else {
            return;
        };
        let Some(stream) = self.calls.borrow().get(&id).map(|running| Rc::clone(&running.stream)) else { return };
        match method.as_str() {
            "stream.data" if stream.deliver(attachment.unwrap_or_default()) => {}
            "stream.data" => {
                let message = "the caller sent more bytes than the agent had granted";
                self.stop(&id, AgentError::new(Code::ResourceExhausted, "window_exceeded", message));
            }
            "stream.end" => stream.end(),
            "stream.credit" => stream.add_credit(params.get("bytes").and_then(Value::as_u64).unwrap_or(0)),
            "cancel" => self.stop(&id, canceled()),
            _ => {}
        }
    }

    async fn called(self: &Rc<Self>, id: CallId, Request { method, params }: Request, attachment: Option<Vec<u8>>) {
        if method == "hello" {
            self.cancel_all();
            self.outbox.clear();
            self.agent.thaw();
        }
        if let Some(refusal) = self.refusal(&id, &method) {
            return self.outbox.answer_always(Some(&id), &Err(refusal)).await;
        }
        let always = methods::works_while_quiesced(&method);
        let (stream, outbox) = (Rc::default(), Rc::clone(&self.outbox));
        let call = Call { id: id.clone(), method, params, attachment, stream: Rc::clone(&stream), outbox };
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
            let message = format!("call {} is still unanswered: give every call its own id", id.to_json());
            return Some(AgentError::malformed(-32600, "duplicate_id", message));
        }
        if calls.len() >= MAX_CALLS_IN_FLIGHT {
            let message =
                format!("{MAX_CALLS_IN_FLIGHT} calls are unanswered on this channel: wait for an answer first");
            return Some(AgentError::new(Code::ResourceExhausted, "too_many_calls", message));
        }
        if !self.agent.gate.is_open() && !methods::works_while_quiesced(method) {
            return Some(AgentError::new(Code::Unavailable, "quiesced", "the agent is quiesced for a checkpoint"));
        }
        None
    }

    /// Ends a call early. Dropping its task undoes what the call began. The call counts as unanswered until its answer is sent.
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
