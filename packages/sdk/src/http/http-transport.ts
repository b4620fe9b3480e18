import { abortError, errorFromBody, type OperationId, pause, routes, SandboxError } from "@sandpiper/protocol";
import { backOffMs } from "../back-off.ts";
import type { ClientSpec } from "../client-options.ts";
import { isMoving, wasNotBegun } from "../moving.ts";
import { unreachable } from "../unreachable.ts";
import type { CookieJar } from "./cookie-jar.ts";
import { type PathParameters, type Query, requestUrl } from "./request-url.ts";

/** About three seconds with back-off, so that a caller soon learns that no node runs. */
const MAX_ATTEMPTS = 7;

/** No answer, or that of a load balancer that could not reach the node. */
const LOST_REASONS: readonly string[] = ["node_unreachable", "unexpected_answer"];

export interface HttpRequest {
  readonly path?: PathParameters | undefined;
  readonly query?: Query | undefined;
  readonly json?: unknown;
  readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The request is idempotent, so the client may send it again. */
  readonly isRepeatable?: boolean | undefined;
}

/** Calls operations of the REST API; every failure is a SandboxError. */
export class HttpTransport {
  readonly #spec: ClientSpec;
  readonly #cookies: CookieJar;
  #hasBeenAnswered = false;

  constructor(spec: ClientSpec, cookies: CookieJar) {
    this.#spec = spec;
    this.#cookies = cookies;
  }

  /** The answer's JSON. It is not checked, so that a newer node may add fields. */
  async json<Answer>(operation: OperationId, request: HttpRequest = {}): Promise<Answer> {
    return await this.#request(operation, request, async (response) => (await response.json()) as Answer);
  }

  async empty(operation: OperationId, request: HttpRequest = {}): Promise<void> {
    await this.#request(operation, request, async (response) => {
      await response.body?.cancel();
    });
  }

  async bytes(operation: OperationId, request: HttpRequest = {}): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#request(operation, request, async (response) => new Uint8Array(await response.arrayBuffer()));
  }

  /** The answer's body as a stream. */
  async stream(operation: OperationId, request: HttpRequest = {}): Promise<ReadableStream<Uint8Array>> {
    const body = await this.#request(operation, request, async (response) => response.body ?? new Blob([]).stream());
    const reader = body.getReader();
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (thrown) {
        // Each runtime reports a connection that was cut during an answer in its own way.
        controller.error(this.#errorFrom(thrown, operation, request.signal));
      }
    };
    return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
  }

  /** Waits before another attempt; returns early when the signal aborts. */
  async backOff(attempt: number, signal: AbortSignal | undefined): Promise<void> {
    const { timing } = this.#spec;
    await pause(timing, backOffMs(attempt, timing.random), signal);
  }

  async #request<Answer>(
    operation: OperationId,
    request: HttpRequest,
    read: (response: Response) => Promise<Answer>,
  ): Promise<Answer> {
    const { signal, isRepeatable = routes[operation].method === "GET" } = request;
    const { timing } = this.#spec;
    const startedMs = timing.monotonicMs();
    for (let attempt = 0; ; attempt++) {
      const refusal: Refusal = { retryAfterMs: 0 };
      try {
        return await this.#attempt(operation, request, { read, refusal });
      } catch (thrown) {
        const error = this.#errorFrom(thrown, operation, signal);
        const { retryAfterMs } = refusal;
        const wasRefused = wasNotBegun(error) || isLimited(error, refusal);
        const isHarmless = isRepeatable || (wasRefused && !(request.body instanceof ReadableStream));
        if (!isHarmless || !this.#mayRepeat(error, { attempt, sinceMs: startedMs, retryAfterMs })) throw error;
        await pause(timing, Math.max(retryAfterMs, backOffMs(attempt, timing.random)), signal);
        if (signal?.aborted) throw abortError(signal, operation);
      }
    }
  }

  /** Replacing a node or moving a sandbox takes longer than a busy node. */
  #mayRepeat(
    error: SandboxError,
    { attempt, sinceMs, retryAfterMs }: Refusal & { readonly attempt: number; readonly sinceMs: number },
  ): boolean {
    const { timing, reconnectTimeoutMs } = this.#spec;
    if (timing.monotonicMs() - sinceMs + retryAfterMs > reconnectTimeoutMs) return false;
    if (isLimited(error, { retryAfterMs })) return attempt + 1 < MAX_ATTEMPTS;
    if (error.code !== "unavailable") return false;
    const isAway = this.#hasBeenAnswered && LOST_REASONS.includes(error.reason);
    if (isAway || isMoving(error)) return timing.monotonicMs() - sinceMs < reconnectTimeoutMs;
    return attempt + 1 < MAX_ATTEMPTS;
  }

  async #attempt<Answer>(
    operation: OperationId,
    request: HttpRequest,
    { read, refusal }: { readonly read: (response: Response) => Promise<Answer>; readonly refusal: Refusal },
  ): Promise<Answer> {
    const { method, path } = routes[operation];
    const { apiKey, baseUrl } = this.#spec;
    const headers: Record<string, string> = { ...request.headers };
    const cookie = this.#cookies.header;
    if (cookie !== undefined) headers["cookie"] = cookie;
    if (apiKey !== undefined) headers["authorization"] = `Bearer ${apiKey}`;
    if (request.json !== undefined) headers["content-type"] = "application/json";
    else if (request.body !== undefined) headers["content-type"] = "application/octet-stream";
    const response = await this.#spec.fetch(requestUrl(baseUrl, path, request), {
      method,
      headers,
      body: request.json === undefined ? (request.body ?? null) : JSON.stringify(request.json),
      signal: request.signal ?? null,
      ...(request.body instanceof ReadableStream ? { duplex: "half" } : {}),
    } as RequestInit);
    this.#cookies.take(response.headers);
    if (!response.ok) refusal.retryAfterMs = retryAfterMs(response);
    if (!response.ok) throw errorFromBody(await errorJson(response), { status: response.status });
    this.#hasBeenAnswered = true;
    return await read(response);
  }

  #errorFrom(thrown: unknown, operation: OperationId, signal: AbortSignal | undefined): SandboxError {
    if (thrown instanceof SandboxError) return thrown;
    if (signal?.aborted) return abortError(signal, operation);
    return unreachable(this.#spec.baseUrl, thrown);
  }
}

/** When the node, or a proxy, wants the request again; 0 if it does not say. */
interface Refusal {
  retryAfterMs: number;
}

function retryAfterMs({ headers }: Response): number {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : 0;
}

/** Refused before it began, because the caller sends too much; a quota that needs a change has no time. */
function isLimited({ code }: SandboxError, { retryAfterMs }: Refusal): boolean {
  return code === "resource_exhausted" && retryAfterMs > 0;
}

async function errorJson(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
