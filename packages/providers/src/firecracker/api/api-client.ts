import { type IncomingMessage, request } from "node:http";
import { SandboxError } from "@sandpiper/core";
import type { ApiRequests, InstanceInfo } from "./api-requests.ts";

/** Answers have a few lines. The limit protects against a compromised Firecracker process. */
const MAX_ANSWER_BYTES = 64 * 1024;

interface ApiAnswer {
  readonly status: number;
  readonly text: string;
}

/** A client of one Firecracker's API socket, with one connection for each request. */
export class ApiClient {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  async describe(signal?: AbortSignal): Promise<InstanceInfo> {
    const answer = await this.#ask("GET", "/", { signal });
    if (answer.status !== 200) throw refused("GET /", answer);
    return parse("GET /", answer) as InstanceInfo;
  }

  /** Rejects with Firecracker's error. */
  async send<R extends keyof ApiRequests>(route: R, body: ApiRequests[R], signal?: AbortSignal): Promise<void> {
    const [method = "", path = ""] = route.split(" ");
    const answer = await this.#ask(method, path, { body: JSON.stringify(body), signal });
    if (answer.status < 200 || answer.status > 299) throw refused(route, answer);
  }

  async #ask(
    method: string,
    path: string,
    { body, signal }: { readonly body?: string; readonly signal?: AbortSignal | undefined },
  ): Promise<ApiAnswer> {
    signal?.throwIfAborted();
    try {
      return await exchange({ socketPath: this.#socketPath, method, path }, body, signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw new SandboxError("firecracker_gone", {
        message: `Firecracker did not answer ${method} ${path}: ${error instanceof Error ? error.message : error}`,
        hint: "its process has probably ended: create a new sandbox",
        cause: error,
      });
    }
  }
}

function exchange(
  target: { readonly socketPath: string; readonly method: string; readonly path: string },
  body: string | undefined,
  signal: AbortSignal | undefined,
): Promise<ApiAnswer> {
  const headers = {
    Accept: "application/json",
    ...(body === undefined ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) }),
  };
  return new Promise((resolve, reject) => {
    const options = { ...target, headers, agent: false as const, ...(signal === undefined ? {} : { signal }) };
    const asked = request(options, (answer) => read(answer).then(resolve, reject));
    asked.on("error", reject);
    asked.end(body);
  });
}

async function read(answer: IncomingMessage): Promise<ApiAnswer> {
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) {
    text += piece;
    if (text.length > MAX_ANSWER_BYTES) throw new Error(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`);
  }
  return { status: answer.statusCode ?? 0, text };
}

function refused(route: string, answer: ApiAnswer): SandboxError {
  const fault = faultOf(answer.text);
  return new SandboxError("firecracker_refused", {
    message: `Firecracker refused ${route} with status ${answer.status}: ${fault}`,
    hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
    details: { route, status: answer.status, fault },
  });
}

/** The text of an error answer in any format. */
function faultOf(text: string): string {
  try {
    const { fault_message: fault } = JSON.parse(text) as { readonly fault_message?: unknown };
    return typeof fault === "string" ? fault : text;
  } catch {
    return text || "it gave no reason";
  }
}

function parse(route: string, answer: ApiAnswer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    throw refused(route, answer);
  }
}
