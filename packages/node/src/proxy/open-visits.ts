import type { Clock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { CredentialWatch } from "../auth/credential-watch.ts";
import type { Previews } from "../preview/previews.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import type { Admission } from "./preview-gate.ts";

/** The longest that a timer can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface OpenVisitsOptions {
  readonly previews: Previews;
  readonly registry: Pick<SandboxRegistry, "record">;
  readonly credentials: CredentialWatch;
  readonly clock: Clock;
}

interface OpenVisit {
  readonly id: SandboxId;
  readonly admission: Admission;
  /** The key or token that admitted it, if any. */
  readonly credential: string | undefined;
  /** Whether it is a WebSocket, whose client connects again. */
  readonly isSocket: boolean;
  readonly cut: () => void;
}

/** Requests and sockets of previews that are open. Each is cut when the right to use the preview ends. */
export class OpenVisits implements Disposable {
  readonly #options: OpenVisitsOptions;
  readonly #open = new Set<OpenVisit>();
  readonly #subscription: Disposable;

  constructor(options: OpenVisitsOptions) {
    this.#options = options;
    this.#subscription = options.previews.onChanged((id) => this.#recheck(id));
  }

  /** Dispose the result when the visit has ended. */
  add(visit: OpenVisit): Disposable {
    const { credentials, clock } = this.#options;
    const { admission, credential, cut } = visit;
    const stack = new DisposableStack();
    this.#open.add(visit);
    stack.defer(() => void this.#open.delete(visit));
    if (credential !== undefined) stack.use(credentials.watch(credential, cut));
    if (admission.expiresAtMs !== undefined) {
      const leftMs = Math.max(0, admission.expiresAtMs - clock.now().getTime());
      stack.defer(clock.schedule(Math.min(leftMs, MAX_TIMER_MS), cut));
    }
    return stack;
  }

  /** A node that stops waits for requests, but not for sockets. */
  cutSockets(): void {
    for (const { isSocket, cut } of [...this.#open]) if (isSocket) cut();
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    for (const { cut } of [...this.#open]) cut();
  }

  #recheck(id: SandboxId): void {
    const record = this.#options.registry.record(id);
    for (const visit of [...this.#open]) {
      if (visit.id === id && (record === undefined || !visit.admission.isAllowed(record))) visit.cut();
    }
  }
}
