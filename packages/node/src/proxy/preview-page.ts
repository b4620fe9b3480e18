import type { IncomingMessage, ServerResponse } from "node:http";
import type { SandboxError } from "@sandpiper/core";
import { errorBody } from "@sandpiper/protocol";
import { errorHeaders, statusOf } from "../http/error-response.ts";

export interface PreviewFailure {
  readonly error: SandboxError;
  readonly requestId: string;
}

const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors *";

const titles: Readonly<Record<string, string>> = {
  preview_private: "This preview is private",
  invalid_link: "This link is no longer valid",
  no_such_sandbox: "No such sandbox",
  no_such_preview: "No such preview",
  sandbox_destroyed: "This sandbox is gone",
  sandbox_failed: "This sandbox has failed",
  stopped_by_owner: "This sandbox is stopped",
  port_not_listening: "Nothing listens on this port",
  bad_guest_response: "The server in the sandbox gave no valid answer",
  node_stopping: "The node is restarting",
  sandbox_moved: "The node is draining",
  rate_limited: "Too many requests",
  preview_connections: "Too many connections",
};

/** Answers with the reason of a failure: a page for browsers, JSON for programs. */
export function answerFailure(request: IncomingMessage, response: ServerResponse, failure: PreviewFailure): void {
  const { error, requestId } = failure;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const isPage = /\btext\/html\b/.test(request.headers.accept ?? "");
  const text = isPage ? pageOf(failure) : JSON.stringify(errorBody(error, requestId));
  // The rest of an upload is not read.
  if (!request.complete) response.shouldKeepAlive = false;
  response.writeHead(statusOf(error), {
    ...errorHeaders(error),
    "content-type": isPage ? "text/html; charset=utf-8" : "application/json",
    "content-length": Buffer.byteLength(text),
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "x-request-id": requestId,
  });
  response.end(request.method === "HEAD" ? undefined : text);
}

function pageOf({ error, requestId }: PreviewFailure): string {
  const title = titles[error.reason] ?? "The preview cannot be shown";
  const hint = error.hint === undefined ? "" : `<p>${escaped(sentence(error.hint))}</p>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:38em;margin:15vh auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.4em}small{color:#666}@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}}</style></head>
<body><h1>${escaped(title)}</h1><p>${escaped(sentence(error.message))}</p>${hint}
<small>${escaped(error.reason)} · request ${escaped(requestId)}</small></body></html>
`;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
