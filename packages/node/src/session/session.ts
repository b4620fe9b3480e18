import { type InstanceExit, SandboxError } from "@sandpiper/core";
import type { SessionEvent, SessionStatus } from "@sandpiper/protocol";
import type { Logger } from "pino";
import type { Principal } from "../auth/principal.ts";
import { publicError } from "../http/error-response.ts";
import type { SavePhase } from "../sandboxes/live-sandbox.ts";
import { closeCodes, type MessageSocket } from "../socket/message-socket.ts";
import type { SocketAudit } from "../socket/socket-audit.ts";
import type { SocketDependencies } from "../socket/socket-dependencies.ts";
import { type CodeRequest, Execution, type ExecutionListener } from "./execution.ts";
import type { Resume } from "./output-cursor.ts";
import { type OutputPosition, START } from "./output-position.ts";
import { errorFields, refused, statusUpdate } from "./session-event.ts";
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
  /** Resolve the sends that are on the way. */
  readonly #sending = new Set<(isSent: boolean) => void>();
  #begun: Promise<void> = Promise.resolve();
  #delivery: Promise<void> = Promise.resolve();
  #isDelivering = false;
  #hasSandboxEnded = false;

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

  /** A client that has been replaced may never read what is on the way to it, and its successor must not wait for that. */
  async send(event: SessionEvent): Promise<boolean> {
    if (this.signal.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#sending.add(resolve);
    this.#options.socket.send(event).then(resolve);
    const isSent = await promise;
    this.#sending.delete(resolve);
    return isSent;
  }

  get isLeaving(): boolean {
    return this.#options.socket.isClosed;
  }

  /** Announces that the sandbox runs, and delivers an execution that an earlier client started. */
  begin(fields: Parameters<typeof statusUpdate>[1] = {}, resume?: Resume): void {
    const { slot } = this.#options;
    this.send(statusUpdate("SANDBOX_RUNNING", fields));
    this.#begun = slot.recovered.then(async () => {
      const { execution } = slot;
      const problem = resume && (await this.#objection(execution, resume));
      if (problem !== undefined) {
        const about = { ...errorFields(problem), execution: resume?.execution };
        this.send(statusUpdate("SANDBOX_EXECUTION_NOT_FOUND", about));
      }
      if (execution === undefined || this.signal.aborted) return;
      this.#deliver(execution, problem === undefined ? resume?.position : undefined);
    });
  }

  /** Runs a client's code, unless its execution was started before. */
  async run(request: CodeRequest): Promise<void> {
    const { slot } = this.#options;
    await this.#begun;
    // A client that attaches again sends its code again.
    if (this.signal.aborted || this.#hasSandboxEnded) return;
    const known = slot.execution;
    if (known !== undefined && known.id === request.execution) {
      if (!this.#isDelivering) this.#deliver(known, START);
      return;
    }
    // Only running code is in the way; what an earlier client left comes first.
    if (known !== undefined && (await known.hasEnded())) await this.#delivery;
    if (this.signal.aborted) return;
    this.#forgetDelivered();
    if (slot.execution !== undefined) {
      this.#refuse(busy(), request.execution);
      return;
    }
    slot.execution = Execution.start(slot.live, request);
    const { execution } = slot;
    // The same request, sent again meanwhile, must not deliver it a second time.
    this.#isDelivering = true;
    await this.#options.audit.note("startProcess", slot.live.id);
    this.#isDelivering = false;
    if (!this.signal.aborted && slot.execution === execution) this.#deliver(execution);
  }

  /** Makes room for another client. */
  detach(): void {
    const message = "detached: another client has taken over this sandbox";
    this.send({ event: "error", message, reason: "session_taken_over" });
    this.#leave();
    this.#options.socket.close(closeCodes.policy, "taken over");
  }

  async sandboxEnded({ reason, message }: InstanceExit): Promise<void> {
    const { slot, socket, dependencies } = this.#options;
    const { id } = slot.live;
    this.#hasSandboxEnded = true;
    await this.#delivery;
    const text = `sandbox ${id} has ended: ${message}`;
    if (reason === "checkpointed") {
      this.#moved(`sandbox ${id} was saved and no longer runs here: attach again to continue`, reason);
    } else if (reason === "destroyed") {
      this.send(statusUpdate("SANDBOX_DELETED", { message: text }));
      socket.close(closeCodes.normal, reason);
    } else if (await dependencies.locator.isRestorable(id)) {
      this.#moved(`${text}: attach again to continue at its newest checkpoint`, reason);
    } else {
      this.send({ event: "error", message: text, reason: "instance_crashed" });
      socket.close(closeCodes.internal, reason);
    }
  }

  /** Has the client attach again, which restores the sandbox. */
  #moved(message: string, why: InstanceExit["reason"]): void {
    this.send(statusUpdate("SANDBOX_MOVED", { message }));
    this.#options.socket.close(closeCodes.comeBack, why);
  }

  /** Why an execution cannot be continued where the client wants; undefined if it can. */
  async #objection(execution: Execution | undefined, resume: Resume): Promise<SandboxError | undefined> {
    const { id, record } = this.#options.slot.live;
    const { offset } = resume.position;
    if (execution?.id !== resume.execution) {
      return new SandboxError("no_such_execution", {
        message: `sandbox ${id} does not know execution ${resume.execution}`,
      });
    }
    const isSameHistory = offset === 0 || resume.rollbacks === record.rollbacks;
    if (isSameHistory && (await execution.reaches(resume.position).catch(() => true))) return undefined;
    return new SandboxError("rolled_back", {
      message: `sandbox ${id} was restored to an earlier checkpoint, and the output up to byte ${offset} is lost`,
      details: { position: offset, rollbacks: record.rollbacks },
    });
  }

  #deliver(execution: Execution, from?: OutputPosition): void {
    const { slot, socket } = this.#options;
    this.#isDelivering = true;
    this.#delivery = execution.deliver(this, from).then(
      (isDelivered) => {
        this.#isDelivering = false;
        // The client may still lose its connection before it has read the end.
        if (isDelivered) socket.whenReceived(() => this.#forgetDelivered());
      },
      (thrown) => {
        this.#isDelivering = false;
        if (slot.execution === execution) slot.execution = undefined;
        this.#refuse(thrown, execution.id);
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

  #refuse(thrown: unknown, execution: string | undefined): void {
    const error = publicError(thrown);
    if (error.reason === "sandbox_stopped") {
      // The code continues when the sandbox is restored, unless its processes are not saved.
      if (this.#options.slot.live.record.fidelity === "filesystem") this.send(refused(lost(), execution));
      return;
    }
    if (error.code === "internal") this.#options.logger.error({ err: error }, "could not run code of a session");
    this.send(refused(error, execution));
  }

  #leave(): void {
    const { slot } = this.#options;
    if (this.signal.aborted) return;
    this.#leaving.abort();
    for (const resolve of this.#sending) resolve(false);
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

function busy(): SandboxError {
  return new SandboxError("execution_running", { message: "the code was not run: the session already runs code" });
}

function lost(): SandboxError {
  return new SandboxError("process_lost", {
    message: "the running code is lost: the sandbox was saved without its processes",
    hint: "run the code again",
  });
}
