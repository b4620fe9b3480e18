import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";

const RETRY_MS = 100;

export interface EngineCall {
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly body?: NodeJS.ReadableStream | undefined;
  readonly signal: AbortSignal;
}

/** Makes one HTTP call to an engine on a Unix socket and returns the response body. */
export async function callEngine(engineUrl: string, { path, method, body, signal }: EngineCall): Promise<string> {
  const options: RequestOptions = {
    socketPath: engineUrl.slice("unix://".length),
    path,
    method,
    signal,
    agent: false,
    headers: { host: "engine", ...(body === undefined ? {} : { "content-type": "application/x-tar" }) },
  };
  const call = request(options);
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    call.once("response", resolve);
    call.once("error", reject);
  });
  if (body === undefined) call.end();
  // The engine may answer before it has read the whole body.
  else pipeline(body, call).catch(() => {});
  const answer = await answered;
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += piece;
  if (answer.statusCode === 200) return text;
  throw new SandboxError("engine_failed", {
    message: `the engine answered ${method} ${path} with ${answer.statusCode}: ${text.trim().slice(0, 500)}`,
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
