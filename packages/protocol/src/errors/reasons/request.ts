import type { ErrorReasonEntry } from "../error-reason.ts";

export const requestReasons = {
  batch_not_supported: {
    code: "invalid_argument",
    meaning: "The body is a batch of messages, which MCP no longer has.",
    hint: "send each message in its own request",
  },
  body_too_deep: {
    code: "invalid_argument",
    meaning: "The body is nested too deeply.",
    hint: "send a flatter object, or a string",
    details: { maxDepth: "number" },
  },
  body_too_large: {
    code: "invalid_argument",
    meaning: "The body, or the files of the archive, are larger than allowed.",
    hint: "send less at once; for files, create the sandbox with a larger diskMib",
    details: { limitBytes: "number" },
  },
  head_too_large: {
    code: "invalid_argument",
    meaning: "The request line and headers are too large.",
    hint: "send fewer or shorter headers",
  },
  internal_error: {
    code: "internal",
    meaning: "The node failed on this request.",
    hint: "the node's log has the cause under this request's id; please report it",
  },
  invalid_body: {
    code: "invalid_argument",
    meaning: "The body does not match the schema of the operation.",
    hint: "see GET /openapi.json for the schema",
    details: { issues: "object[]" },
  },
  invalid_idempotency_key: {
    code: "invalid_argument",
    meaning: "The Idempotency-Key header is not 1 to 255 visible ASCII characters.",
    hint: "use a new UUID for each sandbox that you want",
  },
  invalid_last_event_id: {
    code: "invalid_argument",
    meaning: "The Last-Event-ID header is not the id of an event.",
    hint: "send the id of the last event that you received, or leave the header out",
  },
  invalid_query: {
    code: "invalid_argument",
    meaning: "The query does not match the schema of the operation.",
    hint: "see GET /openapi.json for the schema",
    details: { issues: "object[]?" },
  },
  malformed_json: {
    code: "invalid_argument",
    meaning: "The body is not JSON.",
    hint: "send one JSON object in UTF-8",
  },
  malformed_message: {
    code: "invalid_argument",
    meaning: "A client's WebSocket message does not match the protocol.",
    hint: "see docs/sockets.md for the messages",
  },
  malformed_request: {
    code: "invalid_argument",
    meaning: "The node cannot parse the request.",
    hint: "check the client: one side may speak TLS and the other not",
  },
  method_not_allowed: {
    code: "invalid_argument",
    meaning: "The path does not support this HTTP method.",
    hint: "use one of the allowed methods",
    details: { allowed: "string" },
  },
  no_session: {
    code: "invalid_argument",
    meaning: "The request belongs to no MCP session.",
    hint: "start one with initialize, and send the header Mcp-Session-Id of its answer with every request",
  },
  no_such_route: {
    code: "not_found",
    meaning: "The node has nothing at this path.",
    hint: "see GET /openapi.json for the paths; WebSockets are at /v1/socket, /create and /attach/<sandbox id>",
  },
  no_such_session: {
    code: "not_found",
    meaning: "The MCP session has ended, or belongs to another node.",
    hint: "start a new one with initialize",
  },
  no_such_webhook: {
    code: "not_found",
    meaning: "No webhook with this id exists.",
    hint: "list the webhooks to see their ids",
  },
  private_webhook: {
    code: "invalid_argument",
    meaning: "The webhook's URL is not on the public internet.",
    hint: "to let webhooks call private networks, start the node with allowPrivateWebhooks",
    details: { url: "string" },
  },
  range_not_satisfiable: {
    code: "invalid_argument",
    meaning: "The requested range is outside of the file.",
    hint: "ask for a range inside the file",
    details: { sizeBytes: "number" },
  },
  request_timeout: {
    code: "deadline_exceeded",
    meaning: "The request did not arrive in time.",
    hint: "send it faster, or retry",
  },
  session_ended: {
    code: "canceled",
    meaning: "The MCP session has ended.",
    hint: "start a new session",
  },
  session_limit: {
    code: "resource_exhausted",
    meaning: "The key has as many MCP sessions as it may have.",
    hint: "end one with DELETE, wait until one expires, or raise the node's mcp.maxSessions",
    details: { maxPerKey: "number" },
  },
  stream_in_use: {
    code: "already_exists",
    meaning: "The number of the stream is already in use on this connection.",
    hint: "use each number once",
  },
  stream_limit: {
    code: "resource_exhausted",
    meaning: "The connection has as many streams as it may have.",
    hint: "close some, or open another connection",
    details: { maxStreams: "number" },
  },
  stream_without_input: {
    code: "invalid_argument",
    meaning: "The stream takes no input.",
    hint: 'send input on a stream of kind "stdin"',
  },
  unexpected: {
    code: "internal",
    meaning: "A program threw something that is not a SandboxError.",
    hint: "please report it",
  },
  unsupported_media_type: {
    code: "invalid_argument",
    meaning: "The body has the wrong media type.",
    hint: "send JSON, with the header Content-Type: application/json",
  },
} as const satisfies Record<string, ErrorReasonEntry>;
