import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "@sandpiper/core";

export interface EngineCall {
  readonly path: string;
  readonly method: "GET" | "POST";
  readonly body?: NodeJS.ReadableStream | undefined;
  readonly signal: AbortSignal;
}

/** One plain call of an engine at a Unix socket; answers with the body's text. */
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
  // An answer may come before all was read.
  else pipeline(body, call).catch(() => {});
  const answer = await answered;
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) text += piece;
  if (answer.statusCode === 200) return text;
  throw new SandboxError("unavailable", {
    reason: "engine_refused",
    message: `the engine answered ${method} ${path} with ${answer.statusCode}: ${text.trim().slice(0, 500)}`,
  });
}
