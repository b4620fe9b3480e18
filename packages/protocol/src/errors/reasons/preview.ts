// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const previewReasons = {
  bad_guest_response: { code: "unavailable", meaning: "The server in the sandbox answered with something that is not HTTP, or closed the connection before it answered.", hint: "look at the output of the server; for a protocol other than HTTP use \"sandpiper forward\"", details: { id: "string", port: "number" } },
  invalid_link: { code: "unauthenticated", meaning: "The link or traffic token of a preview has expired, was revoked, or belongs to another preview.", hint: "ask the sandbox's owner for a new link" },
  no_such_port: { code: "not_found", meaning: "The port is not a number from 1 to 65535.", hint: "use the number of a TCP port" },
  no_such_preview: { code: "not_found", meaning: "The host name is below the node's preview domain, but names no preview.", hint: "use <port>-<sandbox id>.<domain>" },
  port_not_listening: { code: "unavailable", meaning: "No program in the sandbox listens on this port.", hint: "start the server in the sandbox, or use one of the ports that it listens on", details: { id: "string", port: "number", listening: "number[]?" } },
  preview_connections: { code: "resource_exhausted", meaning: "As many connections to the sandbox's ports are open as the node allows.", hint: "close some, or retry when some have ended", details: { id: "string", maxConnections: "number" } },
  preview_private: { code: "unauthenticated", meaning: "The preview is private or does not exist, and the request has no credential for it.", hint: "open it with a link from \"sandpiper url\", or send the header Authorization: Bearer <API key>" },
  service_worker_refused: { code: "permission_denied", meaning: "A preview below the node's own address may not install a service worker.", hint: "open the preview under its own host name" },
} as const satisfies Record<string, ErrorReasonEntry>;
