import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import { requestSocket, type SocketAnswer } from "../../host/socket-request.ts";
import type { ApiRequests, InstanceInfo } from "./api-requests.ts";

/** Answers have a few lines. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Firecracker answers with this status while ten connections to its API are open. */
const TOO_MANY_CONNECTIONS = 503;
const AGAIN_MS = 100;
const MAX_ATTEMPTS = 50;

/** A client of one Firecracker's API socket. */
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
  ): Promise<SocketAnswer> {
    signal?.throwIfAborted();
    try {
      const headers = { Accept: "application/json", ...(body && { "Content-Type": "application/json" }) };
      const target = { socketPath: this.#socketPath, method, path, headers };
      for (let attempt = 1; ; attempt++) {
        const answer = await requestSocket({ ...target, body, signal, maxAnswerBytes: MAX_ANSWER_BYTES });
        if (answer.status !== TOO_MANY_CONNECTIONS || attempt === MAX_ATTEMPTS) return answer;
        await sleep(AGAIN_MS, undefined, { signal });
      }
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

function refused(route: string, answer: SocketAnswer): SandboxError {
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

function parse(route: string, answer: SocketAnswer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch {
    throw refused(route, answer);
  }
}
