import { type InstanceExit, SandboxError } from "@sandpiper/core";
import { type SessionEvent, type SessionStatus, sessionRequestSchema } from "@sandpiper/protocol";
import type { Logger } from "pino";
import type { Principal } from "../auth/principal.ts";
import type { SavePhase } from "../sandboxes/live-sandbox.ts";
import { closeCodes, type MessageSocket } from "../socket/message-socket.ts";
import type { SocketAudit } from "../socket/socket-audit.ts";
import type { SocketDependencies } from "../socket/socket-dependencies.ts";
import { Execution, type ExecutionListener } from "./execution.ts";
import { errorText, statusUpdate } from "./session-event.ts";
import type { SessionRegistry, SessionSlot } from "./session-registry.ts";

/** A failed checkpoint leaves the sandbox running. */
const SAVE_STATUS = {
  begun: "SANDBOX_CHECKPOINTING",
  done: "SANDBOX_CHECKPOINTED",
  failed: "SANDBOX_RUNNING",
} as const satisfies Record<SavePhase, SessionStatus>;

/** What creates a session. */
export interface SessionContext {
  readonly socket: MessageSocket;
  readonly principal: Principal;
  readonly dependencies: Pick<SocketDependencies, "sandboxes" | "access" | "locator" | "ownership" | "clock">;
  readonly sessions: SessionRegistry;
  readonly logger: Logger;
  readonly audit: SocketAudit;
}

/** A client that is attached to a sandbox and runs code in it, one piece at a time. */
export class Session implements ExecutionListener {
  readonly #options: SessionContext & { readonly slot: SessionSlot };
  readonly #leaving = new AbortController();
  readonly #hold: Disposable;
  readonly #saves: Disposable;
  #begun: Promise<void> = Promise.resolve();
  #delivery: Promise<void> = Promise.resolve();

  /** The slot must be free. */
  constructor(context: SessionContext, slot: SessionSlot) {
    this.#options = { ...context, slot };
    this.#hold = slot.live.hold("client");
    this.#saves = slot.live.onSave((phase) => this.send(statusUpdate(SAVE_STATUS[phase])));
    slot.session = this;
    this.#setAttached(true);
    context.socket.closed.then(() => this.#leave());
  }

  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  async send(event: SessionEvent): Promise<boolean> {
    return !this.signal.aborted && (await this.#options.socket.send(event));
  }

  get isLeaving(): boolean {
    return this.#options.socket.isClosed;
  }

  /** Announces that the sandbox runs, and delivers an execution that an earlier client started. */
  begin(fields: Parameters<typeof statusUpdate>[1] = {}): void {
    const { slot } = this.#options;
    this.send(statusUpdate("SANDBOX_RUNNING", fields));
    this.#begun = slot.recovered.then(() => {
      if (slot.execution !== undefined && !this.signal.aborted) this.#deliver(slot.execution);
    });
  }

  /** Runs the code in a client's message. */
  async receive(data: Buffer, isBinary: boolean): Promise<void> {
    const { slot } = this.#options;
    await this.#begun;
    if (this.signal.aborted) return;
    try {
      const source = readRequest(data, isBinary);
      this.#forgetDelivered();
      if (slot.execution !== undefined) throw busy();
      slot.execution = Execution.start(slot.live, source);
      this.#options.audit.note("startProcess", slot.live.id);
      this.#deliver(slot.execution);
    } catch (thrown) {
      this.#refuse(thrown);
    }
  }

  /** Makes room for another client. */
  detach(): void {
    this.send({ event: "error", message: "detached: another client has taken over this sandbox" });
    this.#leave();
    this.#options.socket.close(closeCodes.policy, "taken over");
  }

  async sandboxEnded({ reason, message }: InstanceExit): Promise<void> {
    const { slot, socket } = this.#options;
    await this.#delivery;
    if (reason === "checkpointed") {
      const message = `sandbox ${slot.live.id} was saved and no longer runs here: attach again to continue`;
      this.send(statusUpdate("SANDBOX_MOVED", { message }));
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
      (isDelivered) => {
        // The client may still lose its connection before it has read the end.
        if (isDelivered) socket.whenReceived(() => this.#forgetDelivered());
      },
      (thrown) => {
        if (slot.execution === execution) slot.execution = undefined;
        this.#refuse(thrown);
      },
    );
  }

  /** Drops an execution whose end the client has received; a client that sends new code has. */
  #forgetDelivered(): void {
    const { slot } = this.#options;
    const { execution } = slot;
    if (execution === undefined || !execution.isDelivered || slot.session !== this) return;
    slot.execution = undefined;
    execution.forget().catch(() => {});
  }

  #refuse(thrown: unknown): void {
    const error = SandboxError.from(thrown);
    if (error.reason === "sandbox_stopped") {
      // The code continues when the sandbox is restored, unless its processes are not saved.
      if (this.#options.slot.live.record.fidelity === "filesystem") this.#reportLost();
      return;
    }
    if (error.code === "internal") this.#options.logger.error({ err: error }, "could not run code of a session");
    this.send(statusUpdate("SANDBOX_EXECUTION_ERROR", { message: errorText(error) }));
  }

  #reportLost(): void {
    const message = "the running code is lost: the sandbox was saved without its processes (run the code again)";
    this.send(statusUpdate("SANDBOX_EXECUTION_ERROR", { message }));
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
    const { dependencies, slot, logger } = this.#options;
    dependencies.ownership
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
  throw new SandboxError("malformed_request", {
    message: "the request to run code is malformed",
    hint: 'send {"language": "python", "code": "print(1)"} as text',
  });
}

function busy(): SandboxError {
  return new SandboxError("execution_running", { message: "the code was not run: the session already runs code" });
}
