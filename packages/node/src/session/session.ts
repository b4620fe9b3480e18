import { type InstanceExit, SandboxError } from "@sandpiper/core";
import { type SessionEvent, type SessionStatus, sessionRequestSchema } from "@sandpiper/protocol";
import type { Logger } from "pino";
import type { Ownership } from "../ownership/ownership.ts";
import type { SavePhase } from "../sandboxes/live-sandbox.ts";
import { closeCodes, type MessageSocket } from "../socket/message-socket.ts";
import type { SocketAudit } from "../socket/socket-audit.ts";
import { Execution, type ExecutionListener } from "./execution.ts";
import { errorText, statusUpdate } from "./session-event.ts";
import type { SessionSlot } from "./session-registry.ts";

/** A checkpoint that failed leaves the sandbox as it was. */
const SAVE_STATUS = {
  begun: "SANDBOX_CHECKPOINTING",
  done: "SANDBOX_CHECKPOINTED",
  failed: "SANDBOX_RUNNING",
} as const satisfies Record<SavePhase, SessionStatus>;

export interface SessionOptions {
  readonly ownership: Pick<Ownership, "setAttached">;
  readonly socket: MessageSocket;
  readonly slot: SessionSlot;
  readonly logger: Logger;
  readonly audit: SocketAudit;
}

/** A client that is attached to a sandbox and runs code in it, one piece at a time. */
export class Session implements ExecutionListener {
  readonly #options: SessionOptions;
  readonly #leaving = new AbortController();
  readonly #hold: Disposable;
  readonly #saves: Disposable;
  #begun: Promise<void> = Promise.resolve();
  #delivery: Promise<void> = Promise.resolve();

  /** The slot must be free. */
  constructor(options: SessionOptions) {
    const { slot, socket } = options;
    this.#options = options;
    this.#hold = slot.live.hold("client");
    this.#saves = slot.live.onSave((phase) => this.send(statusUpdate(SAVE_STATUS[phase])));
    slot.session = this;
    this.#setAttached(true);
    socket.closed.then(() => this.#leave());
  }

  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  async send(event: SessionEvent): Promise<boolean> {
    return !this.signal.aborted && (await this.#options.socket.send(event));
  }

  /** Its client has said goodbye, even if the connection has not quite ended. */
  get isLeaving(): boolean {
    return this.#options.socket.isClosed;
  }

  /** Says that it is ready, and goes on with what is running. */
  begin(fields: Parameters<typeof statusUpdate>[1] = {}): void {
    const { slot } = this.#options;
    this.send(statusUpdate("SANDBOX_RUNNING", fields));
    this.#begun = slot.recovered.then(() => {
      if (slot.execution !== undefined && !this.signal.aborted) this.#deliver(slot.execution);
    });
  }

  /** What the client sends. */
  async receive(data: Buffer, isBinary: boolean): Promise<void> {
    const { slot } = this.#options;
    await this.#begun;
    if (this.signal.aborted) return;
    try {
      const source = readRequest(data, isBinary);
      this.#forgetTold();
      if (slot.execution !== undefined) throw busy();
      slot.execution = Execution.start(slot.live, source);
      this.#options.audit.note("startProcess", slot.live.id);
      this.#deliver(slot.execution);
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  /** Another client takes its place. */
  detach(): void {
    this.send({ event: "error", message: "another client has taken over this sandbox, so this one was detached" });
    this.#leave();
    this.#options.socket.close(closeCodes.policy, "taken over");
  }

  /** The sandbox is gone, and with it the session. */
  async sandboxEnded({ reason, message }: InstanceExit): Promise<void> {
    const { slot, socket } = this.#options;
    await this.#delivery;
    if (reason === "checkpointed") {
      this.send(statusUpdate("SANDBOX_MOVED", { message: `sandbox ${slot.live.id} goes on elsewhere, or later` }));
      socket.close(closeCodes.comeBack, reason);
      return;
    }
    const text = `sandbox ${slot.live.id} has ended: ${message}`;
    if (reason === "destroyed") this.send(statusUpdate("SANDBOX_DELETED", { message: text }));
    else this.send({ event: "error", message: text });
    socket.close(reason === "destroyed" ? closeCodes.normal : closeCodes.internal, reason);
  }

  #deliver(execution: Execution): void {
    const { slot, socket } = this.#options;
    this.#delivery = execution.deliver(this).then(
      (isTold) => {
        // The client may still lose its connection before it has read the end.
        if (isTold) socket.whenReceived(() => this.#forgetTold());
      },
      (thrown) => {
        if (slot.execution === execution) slot.execution = undefined;
        this.#refuse(thrown);
      },
    );
  }

  /** A client that asks for more has been told of the one before. */
  #forgetTold(): void {
    const { slot } = this.#options;
    const { execution } = slot;
    if (execution === undefined || !execution.isTold || slot.session !== this) return;
    slot.execution = undefined;
    execution.forget().catch(() => {});
  }

  #refuse(thrown: unknown): void {
    const error = SandboxError.from(thrown);
    if (error.reason === "sandbox_stopped") {
      // What runs goes on with the sandbox, and its end says so; unless processes are not saved.
      if (this.#options.slot.live.record.fidelity === "filesystem") this.#tellLost();
      return;
    }
    if (error.code === "internal") this.#options.logger.error({ err: error }, "an execution failed");
    this.send(statusUpdate("SANDBOX_EXECUTION_ERROR", { message: errorText(error) }));
  }

  #tellLost(): void {
    const message = "the code that was running is lost: the sandbox was saved with its files, and without processes";
    this.send(statusUpdate("SANDBOX_EXECUTION_ERROR", { message: `${message} (run it again)` }));
  }

  #leave(): void {
    const { slot } = this.#options;
    if (this.signal.aborted) return;
    this.#leaving.abort();
    this.#hold[Symbol.dispose]();
    this.#saves[Symbol.dispose]();
    if (slot.session !== this) return;
    slot.session = undefined;
    this.#setAttached(false);
  }

  #setAttached(isAttached: boolean): void {
    const { ownership, slot, logger } = this.#options;
    ownership
      .setAttached(slot.live.id, isAttached)
      .catch((thrown) => logger.warn({ err: thrown, sandboxId: slot.live.id }, "could not update a sandbox's lock"));
  }
}

function readRequest(data: Buffer, isBinary: boolean): { readonly language: string; readonly code: string } {
  let value: unknown;
  try {
    value = isBinary ? undefined : JSON.parse(data.toString());
  } catch {
    value = undefined;
  }
  const parsed = sessionRequestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new SandboxError("invalid_argument", {
    reason: "malformed_request",
    message: "a request to run code was not understood",
    hint: 'send {"language": "python", "code": "print(1)"} as text',
  });
}

function busy(): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "execution_running",
    message: "this was not run: the sandbox is running other code, and runs one piece at a time",
    hint: "wait for SANDBOX_EXECUTION_DONE",
  });
}
