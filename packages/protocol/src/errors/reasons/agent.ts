import type { ErrorReasonEntry } from "../error-reason.ts";

export const agentReasons = {
  agent_error: {
    code: "internal",
    meaning: "The agent answered with an error that has no valid reason.",
    hint: "code in the sandbox may have tampered with the agent; create a new sandbox",
  },
  agent_silent: {
    code: "unavailable",
    meaning: "The agent accepted a channel but sent nothing.",
    hint: "retry; if it happens again, create a new sandbox",
  },
  agent_timeout: {
    code: "unavailable",
    meaning: "The agent did not answer in time.",
    hint: "look at the instance's log; on a slow host raise connectTimeoutMs",
    details: { timeoutMs: "number" },
  },
  agent_window_exceeded: {
    code: "unavailable",
    meaning: "The agent sent more bytes than it may, so its channel was closed.",
    hint: "the sandbox can no longer be trusted; destroy it",
    details: { excessBytes: "number?" },
  },
  bad_attachment_size: {
    code: "invalid_argument",
    meaning: "A frame announces an attachment of an invalid size.",
    hint: "follow docs/agent-protocol.md",
  },
  bad_params: {
    code: "invalid_argument",
    meaning: "The parameters do not match the method of the agent.",
    hint: "correct the parameters; see docs/agent-protocol.md",
  },
  canceled: {
    code: "canceled",
    meaning: "The caller canceled the call.",
  },
  channel_closed: {
    code: "unavailable",
    meaning: "The channel to the agent closed.",
    hint: "retry: the next operation opens a new channel",
  },
  duplicate_id: {
    code: "invalid_argument",
    meaning: "A call has the id of another call that is still open.",
    hint: "give each call its own id",
  },
  invalid_answer: {
    code: "internal",
    meaning: "An answer of the agent or node does not match the protocol.",
    hint: "code in the sandbox may have tampered with the agent; create a new sandbox",
    details: { method: "string?" },
  },
  line_too_long: {
    code: "invalid_argument",
    meaning: "A line on the agent's channel is longer than allowed.",
    hint: "send long contents as an attachment",
  },
  malformed_text: {
    code: "invalid_argument",
    meaning: "A string contains half of a surrogate pair and cannot be sent.",
    hint: "send well-formed Unicode; send bytes through files or standard input",
  },
  not_a_request: {
    code: "invalid_argument",
    meaning: "A message on the agent's channel is not a JSON-RPC 2.0 request.",
    hint: "follow docs/agent-protocol.md",
  },
  not_an_object: {
    code: "invalid_argument",
    meaning: "A line on the agent's channel is JSON, but not an object.",
    hint: "follow docs/agent-protocol.md",
  },
  not_json: {
    code: "invalid_argument",
    meaning: "A line on the agent's channel is not JSON.",
    hint: "follow docs/agent-protocol.md",
  },
  not_quiesced: {
    code: "failed_precondition",
    meaning: "The instance cannot be saved because its agent is not quiesced.",
    hint: "quiesce the agent first",
  },
  quiesced: {
    code: "unavailable",
    meaning: "The agent is quiesced for a checkpoint.",
    hint: "retry when the checkpoint is done",
  },
  reader_left: {
    code: "canceled",
    meaning: "A stream was not read to its end.",
  },
  request_too_large: {
    code: "invalid_argument",
    meaning: "The request is longer than the agent reads.",
    hint: "write long contents to a file, or send them as standard input",
    details: { lineBytes: "number", maxLineBytes: "number" },
  },
  rpc_timeout: {
    code: "deadline_exceeded",
    meaning: "The agent did not answer the call in time, and it was canceled.",
    hint: "check the sandbox with isHealthy(), or allow more time with timeoutMs",
    details: { method: "string", timeoutMs: "number" },
  },
  stream_already_read: {
    code: "failed_precondition",
    meaning: "A stream has one reader, and it is already waiting.",
    hint: "wait for one next() before the other",
  },
  stream_closed: {
    code: "failed_precondition",
    meaning: "The call has ended; nothing more can be sent.",
    hint: "make a new call",
  },
  stream_cut: {
    code: "data_loss",
    meaning: "The last bytes of a stream did not arrive.",
    hint: "read again from the last offset that arrived",
    details: { position: "number?", end: "number?", missing: "number?" },
  },
  stream_gap: {
    code: "data_loss",
    meaning: "Bytes in the middle of a stream are missing.",
    hint: "read again from the last offset that arrived",
    details: { expected: "number", offset: "unknown" },
  },
  too_many_calls: {
    code: "resource_exhausted",
    meaning: "As many calls are open as the agent takes.",
    hint: "retry when some have ended",
  },
  torn_attachment: {
    code: "invalid_argument",
    meaning: "The attachment of a frame does not end with a newline.",
    hint: "follow docs/agent-protocol.md",
  },
  tunnel_closed: {
    code: "canceled",
    meaning: "The caller closed the tunnel.",
  },
  unknown_method: {
    code: "unimplemented",
    meaning: "The agent does not have this method.",
    hint: "hello lists the agent's methods; a newer agent may have it",
  },
  window_exceeded: {
    code: "resource_exhausted",
    meaning: "The caller sent more bytes than the agent's window allows, so the call ended.",
    hint: "send more only when the agent grants credit",
  },
  window_too_small: {
    code: "invalid_argument",
    meaning: "The caller's window cannot take one message.",
    hint: "grant a larger window",
  },
} as const satisfies Record<string, ErrorReasonEntry>;
