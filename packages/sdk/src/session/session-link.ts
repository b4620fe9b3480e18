import { abortError, SandboxError, type SessionEvent } from "@sandpiper/protocol";
import { backOffMs } from "../back-off.ts";
import type { ClientSpec } from "../client-options.ts";
import { createDeferred } from "../deferred.ts";
import { CookieJar } from "../http/cookie-jar.ts";
import { findRefusal } from "../http/find-refusal.ts";
import { HttpTransport } from "../http/http-transport.ts";
import { unreachable } from "../unreachable.ts";
import { errorOfEvent, type StatusEvent } from "./session-event.ts";
import type { ExecutionStream } from "./session-execution.ts";
import { SessionExecutions } from "./session-executions.ts";
import { SessionSocket, type SocketEnd } from "./session-socket.ts";

/** A caller should soon learn that no node runs. */
const FIRST_CONNECT_TIMEOUT_MS = 3_000;
/** After this many milliseconds a second move reconnects without a pause. */
const RESTART_PAUSE_MS = 1_000;

/** Close codes of the node. */
const NORMAL = 1000;
const GOING_AWAY = 1001;
const POLICY = 1008;
const MESSAGE_TOO_BIG = 1009;
const MOVED = 1012;
/** The node has ended the session itself, so no takeover is necessary to attach again. */
const CLEAN_CODES: readonly (number | undefined)[] = [NORMAL, GOING_AWAY, POLICY, MOVED];

export interface SessionLinkOptions {
  readonly spec: ClientSpec;
  /** The path that creates the sandbox, unless `id` is given. */
  readonly createPath?: string | undefined;
  readonly id?: string | undefined;
  /** The sandbox's token. */
  readonly token?: string | undefined;
  /** Whether the first connection replaces another client. */
  readonly takeover?: boolean | undefined;
  /** How long the first connection waits while another client is attached. */
  readonly waitMs?: number | undefined;
  /** An execution to continue. */
  readonly resume?: { readonly execution: string; readonly next?: string | undefined } | undefined;
  readonly onStatus: (event: StatusEvent) => void;
  readonly onExecution: (execution: ExecutionStream) => void;
}

/** Keeps a client attached to a sandbox: connects, reconnects, and continues executions at the next byte. */
export class SessionLink {
  readonly executions: SessionExecutions;
  readonly #options: SessionLinkOptions;
  readonly #cookies = new CookieJar();
  readonly #ready = createDeferred<void>();
  readonly #ended = createDeferred<SandboxError | undefined>();
  #http: HttpTransport;
  #id: string | undefined;
  #token: string | undefined;
  #socket: SessionSocket | undefined;
  #isAttached = false;
  #hasBeenAttached = false;
  #isEnded = false;
  /** The connection that creates the sandbox was lost, and this one asks whether it exists. */
  #isRecovering = false;
  #takeover: boolean;
  #attempt = 0;
  #downSinceMs: number | undefined;
  #movedAtMs = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  /** Why the node is about to close the connection. */
  #failure: SandboxError | undefined;

  constructor(options: SessionLinkOptions) {
    this.#options = options;
    this.#id = options.id;
    this.#token = options.token;
    this.#takeover = options.takeover ?? false;
    this.#http = this.#transport();
    this.#ready.promise.catch(() => {});
    this.executions = new SessionExecutions({
      http: () => this.#http,
      sandbox: () => this.#id ?? "",
      onExecution: options.onExecution,
      send: (message) => this.#socket?.send(message),
    });
    if (options.resume !== undefined) this.executions.adopt(options.resume.execution, options.resume.next);
    this.#connect();
  }

  /** Undefined until the sandbox has one. */
  get id(): string | undefined {
    return this.#id;
  }

  get token(): string | undefined {
    return this.#token;
  }

  /** For operations beside the session, with the sandbox's token when it is known. */
  get http(): HttpTransport {
    return this.#http;
  }

  get isAttached(): boolean {
    return this.#isAttached;
  }

  /** Resolves when the session has ended, with the error unless the caller closed it. */
  get ended(): Promise<SandboxError | undefined> {
    return this.#ended.promise;
  }

  /** Resolves when the sandbox runs and the client is attached for the first time. */
  async ready(signal: AbortSignal | undefined): Promise<void> {
    const abort = () => this.#end(abortError(signal as AbortSignal, "the session"));
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    try {
      await this.#ready.promise;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Code keeps running. Resolves when the node can attach the next client. */
  async close(): Promise<void> {
    this.#end(undefined);
    await this.#ended.promise;
  }

  #connect(): void {
    const { spec, createPath } = this.#options;
    this.#isRecovering = createPath !== undefined && this.#id !== undefined && !this.#hasBeenAttached;
    const path = this.#id === undefined ? (createPath as string) : this.#attachPath(this.#id);
    try {
      this.#socket = new SessionSocket({
        spec,
        cookies: this.#cookies,
        credential: this.#token ?? spec.apiKey,
        path,
        onEvent: (event) => this.#receive(event),
        onEnd: (end) => this.#lost(end),
      });
    } catch (thrown) {
      const message = `cannot open a WebSocket to ${spec.baseUrl}: ${thrown instanceof Error ? thrown.message : thrown}`;
      this.#end(new SandboxError("invalid_url", { message, cause: thrown }));
    }
  }

  #attachPath(id: string): string {
    const query = new URLSearchParams(this.executions.resume());
    if (this.#takeover) query.set("takeover", "true");
    return `/attach/${encodeURIComponent(id)}${query.size === 0 ? "" : `?${query}`}`;
  }

  #receive(event: SessionEvent): void {
    if (this.#isEnded) return;
    if (event.event === "sandbox_id") {
      this.#id = event.sandbox_id;
      this.#token = event.token;
      this.#http = this.#transport();
    } else if (event.event === "stdout" || event.event === "stderr") this.executions.output(event);
    else if (event.event === "error") this.#failure = errorOfEvent(event, "unexpected");
    else if (event.event === "status_update") this.#updated(event);
  }

  #updated(event: StatusEvent): void {
    const { status } = event;
    if (status === "SANDBOX_NOT_FOUND") this.#failure = errorOfEvent(event, "no_such_sandbox");
    else if (status === "SANDBOX_IN_USE") this.#failure = errorOfEvent(event, "sandbox_in_use");
    else if (status === "SANDBOX_CREATION_ERROR") this.#failure = errorOfEvent(event, "unexpected");
    else if (status === "SANDBOX_DELETED") this.#failure = errorOfEvent(event, "sandbox_destroyed");
    else if (status === "SANDBOX_RUNNING" && !this.#isAttached) this.#attached();
    else this.executions.updated(event);
    this.#options.onStatus(event);
  }

  #attached(): void {
    this.#isAttached = true;
    this.#hasBeenAttached = true;
    this.#takeover = false;
    this.#attempt = 0;
    this.#downSinceMs = undefined;
    this.#ready.resolve();
    this.executions.attached();
  }

  #lost(end: SocketEnd): void {
    const wasAttached = this.#isAttached;
    const failure = end.refusal ?? this.#failure;
    this.#socket = undefined;
    this.#isAttached = false;
    this.#failure = undefined;
    this.executions.detached();
    if (this.#isEnded) {
      this.#ended.resolve(undefined);
      return;
    }
    const { spec } = this.#options;
    const { timing } = spec;
    const error = failure ?? unreachable(spec.baseUrl, undefined);
    this.#downSinceMs ??= timing.monotonicMs();
    const isLate = timing.monotonicMs() - this.#downSinceMs >= this.#patienceMs(error, end);
    if (isLate || this.#isFinal(error, end)) {
      this.#end(error);
      return;
    }
    // The node has undone the creation, because it noticed the lost connection.
    if (this.#isRecovering && isAbsent(error)) this.#id = this.#token = undefined;
    // The node may take a while to notice that this connection is dead.
    if (wasAttached && !CLEAN_CODES.includes(end.code)) this.#takeover = this.#token !== undefined;
    if (!end.wasOpen && failure === undefined && this.#attempt <= 1) this.#askWhy();
    const pauseMs = this.#isMove(end.code) ? 0 : backOffMs(this.#attempt, timing.random);
    this.#attempt++;
    this.#cancelTimer = timing.schedule(pauseMs, () => this.#connect());
  }

  /** Whether another attempt cannot succeed, or could create a second sandbox. */
  #isFinal(error: SandboxError, end: SocketEnd): boolean {
    const { code, reason } = error;
    if (end.code === MESSAGE_TOO_BIG) return true;
    if (end.wasOpen && this.#id === undefined) return true;
    // Before the node notices that it lost the connection, the sandbox is not ready; after that, it is absent.
    if (this.#isRecovering && (code === "failed_precondition" || isAbsent(error))) return false;
    return code !== "unavailable" && reason !== "sandbox_in_use";
  }

  #patienceMs({ reason }: SandboxError, { wasOpen }: SocketEnd): number {
    const { spec, waitMs = 0 } = this.#options;
    if (this.#hasBeenAttached) return spec.reconnectTimeoutMs;
    if (reason === "sandbox_in_use") return waitMs;
    return wasOpen ? spec.reconnectTimeoutMs : Math.min(spec.reconnectTimeoutMs, FIRST_CONNECT_TIMEOUT_MS);
  }

  /** Whether to reconnect immediately, because the sandbox is already waiting elsewhere. */
  #isMove(code: number | undefined): boolean {
    const nowMs = this.#options.spec.timing.monotonicMs();
    if (code !== MOVED || this.#attempt > 0 || nowMs - this.#movedAtMs < RESTART_PAUSE_MS) return false;
    this.#movedAtMs = nowMs;
    return true;
  }

  /** A WebSocket of a browser does not say why it was refused. */
  #askWhy(): void {
    findRefusal(this.#http).then(
      (error) => {
        if (error !== undefined && !this.#isAttached) this.#end(error);
      },
      () => {},
    );
  }

  #end(error: SandboxError | undefined): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelTimer?.();
    const reason = error ?? new SandboxError("client_closed", { message: "the session was closed" });
    this.#ready.reject(reason);
    this.executions.end(reason);
    if (error !== undefined || this.#socket === undefined) this.#ended.resolve(error);
    this.#socket?.close();
  }

  #transport(): HttpTransport {
    const { spec } = this.#options;
    return new HttpTransport({ ...spec, apiKey: this.#token ?? spec.apiKey }, this.#cookies);
  }
}

function isAbsent({ code }: SandboxError): boolean {
  return code === "not_found" || code === "gone";
}
