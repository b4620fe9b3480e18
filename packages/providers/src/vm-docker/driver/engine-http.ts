import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import { requestSocket } from "../../host/socket-request.ts";

const RETRY_MS = 100;
/** The engine is in a machine with untrusted code. An image's description is the longest answer that this program reads. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

export interface EngineCall {
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly body?: Readable | undefined;
  readonly signal: AbortSignal;
}

/** Makes one HTTP call to an engine on a Unix socket and returns the response body. */
export async function callEngine(engineUrl: string, { path, method, body, signal }: EngineCall): Promise<string> {
  const socketPath = engineUrl.slice("unix://".length);
  const headers = { host: "engine", ...(body === undefined ? {} : { "content-type": "application/x-tar" }) };
  const { status, text } = await requestSocket({
    socketPath,
    path,
    method,
    headers,
    body,
    signal,
    maxAnswerBytes: MAX_ANSWER_BYTES,
  });
  if (status === 200) return text;
  throw new SandboxError("engine_failed", {
    message: `the engine answered ${method} ${path} with ${status}: ${text.trim().slice(0, 500)}`,
    details: { statusCode: status },
  });
}

/** Resolves when the engine answers; rejects with the signal's reason. */
export async function untilEngineAnswers(engineUrl: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await callEngine(engineUrl, { method: "GET", path: "/_ping", signal });
      return;
    } catch {
      signal.throwIfAborted();
    }
    await sleep(RETRY_MS);
  }
}
