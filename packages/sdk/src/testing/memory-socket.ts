import {
  type ClientMessage,
  clientMessageSchema,
  decodeDataFrame,
  type EventBody,
  encodeDataFrame,
  errorBody,
  SandboxError,
  type ServerMessage,
} from "@sandpiper/protocol";
import type { WebSocketConstructor, WebSocketLike } from "../socket/web-socket.ts";
import { requireCredential } from "./memory-fetch.ts";
import type { MemoryProcess } from "./memory-process.ts";
import type { MemoryState } from "./memory-state.ts";

type Open = Extract<ClientMessage, { type: "open" }>;
type Listener = (event: { readonly data?: unknown }) => void;

interface ServedStream {
  credit: number;
  /** A stream at an offset. */
  sandbox?: string;
  process?: MemoryProcess;
  pump?: () => void;
  stop?: () => void;
}

/** The WebSocket of the in-memory server: both ends in one, connected by microtasks. */
export function createMemoryWebSocket(state: MemoryState, sockets: Set<{ cut(): void }>): WebSocketConstructor {
  return class implements WebSocketLike {
    binaryType = "arraybuffer";
    readonly #listeners = new Map<string, Listener[]>();
    readonly #streams = new Map<number, ServedStream>();
    #isClosed = false;

    constructor(url: string, protocols: string[]) {
      queueMicrotask(() => {
        try {
          requireCredential(state, protocols.find((protocol) => protocol.startsWith("bearer."))?.slice(7));
          sockets.add(this);
          state.rollbackListeners.add(this.#rollBack);
          this.#emit("open", {});
          if (!url.endsWith("/v1/socket")) this.#refuseSession();
        } catch {
          this.cut();
        }
      });
    }

    addEventListener(type: string, listener: Listener): void {
      this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
    }

    send(data: string | Uint8Array<ArrayBuffer>): void {
      queueMicrotask(() => {
        if (!this.#isClosed) this.#receive(data);
      });
    }

    close(): void {
      this.cut();
    }

    /** Closes it like a lost network. */
    cut(): void {
      if (this.#isClosed) return;
      this.#isClosed = true;
      sockets.delete(this);
      state.rollbackListeners.delete(this.#rollBack);
      for (const { stop } of this.#streams.values()) stop?.();
      queueMicrotask(() => this.#emit("close", {}));
    }

    #refuseSession(): void {
      const message = "the in-memory server has no sessions (use a node for this test)";
      this.#emit("message", { data: JSON.stringify({ event: "error", reason: "not_in_memory", message }) });
      this.cut();
    }

    #receive(data: string | Uint8Array<ArrayBuffer>): void {
      if (typeof data !== "string") {
        const frame = decodeDataFrame(data);
        const process = frame && this.#streams.get(frame.stream)?.process;
        if (frame === undefined || process === undefined) return;
        process.input(frame.offset, frame.bytes);
        this.#reply({ type: "ack", stream: frame.stream, offset: process.stdinOffset });
        return;
      }
      const message = clientMessageSchema.parse(JSON.parse(data));
      const stream = this.#streams.get(message.stream);
      try {
        if (message.type === "open") this.#open(message);
        else if (message.type === "close") this.#end(message.stream);
        else if (message.type === "finish") {
          stream?.process?.endInput();
          this.#end(message.stream, { type: "end", stream: message.stream });
        } else if (stream !== undefined) {
          stream.credit += message.amount;
          stream.pump?.();
        }
      } catch (thrown) {
        const sandbox = "sandbox" in message ? message.sandbox : undefined;
        this.#fail(message.stream, SandboxError.from(thrown), sandbox);
      }
    }

    #open(message: Open): void {
      const served: ServedStream = { credit: "window" in message ? message.window : 0 };
      if (message.kind === "process") this.#openProcess(message, served);
      else if (message.kind === "stdin") {
        served.process = state.process(message.sandbox, message.process);
        served.sandbox = message.sandbox;
        const { rollbacks } = state.sandbox(message.sandbox);
        this.#reply({ type: "opened", stream: message.stream, offset: served.process.stdinOffset, rollbacks });
      } else if (message.kind === "forget") {
        state.sandboxes.get(message.sandbox)?.processes.delete(message.process);
        this.#reply({ type: "end", stream: message.stream });
        return;
      } else if (message.kind === "connect") {
        const text = `nothing in sandbox ${message.sandbox} listens on port ${message.port}: programs of this server open no ports`;
        throw new SandboxError("connection_refused", { message: text });
      } else this.#openItems(message, served);
      this.#streams.set(message.stream, served);
      served.pump?.();
    }

    #openProcess(message: Extract<Open, { kind: "process" }>, served: ServedStream): void {
      const { stream, sandbox, process: id, spawn } = message;
      const process =
        spawn === undefined ? state.process(sandbox, id) : state.start(sandbox, { ...spawn, process: id });
      served.sandbox = sandbox;
      let offset = message.offset;
      served.pump = () => {
        for (const chunk of process.chunks) {
          const bytes = chunk.bytes.subarray(Math.max(0, offset - chunk.offset)).subarray(0, served.credit);
          if (offset < chunk.offset || bytes.length === 0) continue;
          this.#emitLater(encodeDataFrame({ stream, source: chunk.source, offset, bytes }).buffer);
          offset += bytes.length;
          served.credit -= bytes.length;
        }
        if (process.exit === undefined || offset < process.endOffset) return;
        this.#end(stream, { type: "end", stream, exit: process.exit, offset });
      };
      served.stop = process.listen(served.pump);
      this.#reply({ type: "opened", stream, pid: 1, rollbacks: state.sandbox(sandbox).rollbacks });
    }

    #openItems(message: Extract<Open, { kind: "watch" | "events" }>, served: ServedStream): void {
      const { stream } = message;
      const isWatch = message.kind === "watch";
      if (isWatch) state.sandbox(message.sandbox);
      const items = eventsOf(state, message).map((item) => ({ ...item }));
      const waiting: Extract<ServerMessage, { type: "item" }>["item"][] = items;
      const listener = ({ event, file }: Parameters<typeof state.listeners extends Set<infer L> ? L : never>[0]) => {
        if (event !== undefined && !isWatch) waiting.push(event);
        const below = isWatch && file?.sandbox === message.sandbox && relative(message.path, file.path);
        if (file !== undefined && typeof below === "string") waiting.push({ kind: file.kind, path: below, to: null });
        served.pump?.();
      };
      served.pump = () => {
        while (served.credit > 0) {
          const item = waiting.shift();
          if (item === undefined) return;
          const isWanted =
            isWatch || message.sandbox === undefined || ("sandboxId" in item && item.sandboxId === message.sandbox);
          if (!isWanted) continue;
          served.credit--;
          this.#reply({ type: "item", stream, item });
        }
      };
      state.listeners.add(listener);
      served.stop = () => state.listeners.delete(listener);
      this.#reply({ type: "opened", stream });
    }

    /** Fails streams like a node during a restore; a reopened stream has another history. */
    readonly #rollBack = (sandboxId: string): void => {
      for (const [stream, { sandbox }] of this.#streams) {
        if (sandbox !== sandboxId) continue;
        const message = `sandbox ${sandboxId} is being rolled back`;
        this.#fail(stream, new SandboxError("handoff_under_way", { message }), sandbox);
      }
    };

    #fail(stream: number, error: SandboxError, sandbox: string | undefined): void {
      const rollbacks = state.sandboxes.get(sandbox ?? "")?.rollbacks;
      this.#end(stream, { type: "error", stream, error: errorBody(error, "memory"), rollbacks });
    }

    #end(stream: number, last?: ServerMessage): void {
      this.#streams.get(stream)?.stop?.();
      this.#streams.delete(stream);
      if (last !== undefined) this.#reply(last);
    }

    #reply(message: ServerMessage): void {
      this.#emitLater(JSON.stringify(message));
    }

    #emitLater(data: unknown): void {
      queueMicrotask(() => {
        if (!this.#isClosed) this.#emit("message", { data });
      });
    }

    #emit(type: string, event: { readonly data?: unknown }): void {
      for (const listener of this.#listeners.get(type) ?? []) listener(event);
    }
  };
}

/** Undefined for a path outside. */
function relative(directory: string, path: string): string | undefined {
  const prefix = `${directory.replace(/\/+$/, "")}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
}

function eventsOf(state: MemoryState, message: Extract<Open, { kind: "watch" | "events" }>): readonly EventBody[] {
  if (message.kind === "watch") return [];
  return message.replay ? state.states() : state.events.filter(({ id }) => id > message.after);
}
