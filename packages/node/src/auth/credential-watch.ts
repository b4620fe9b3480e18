import type { Clock } from "@sandpiper/core";
import { SandboxError } from "@sandpiper/protocol";
import type { Authenticator } from "./principal.ts";

/** How long a connection can outlive its credential. */
const INTERVAL_MS = 500;

interface Watched {
  readonly credential: string | undefined;
  readonly onInvalid: (error: SandboxError) => void;
}

/** Checks the credentials of open connections at an interval, with one timer for all. */
export class CredentialWatch {
  readonly #authenticator: Pick<Authenticator, "authenticate">;
  readonly #clock: Clock;
  readonly #watched = new Set<Watched>();
  #stop: (() => void) | undefined;

  constructor(authenticator: Pick<Authenticator, "authenticate">, clock: Clock) {
    this.#authenticator = authenticator;
    this.#clock = clock;
  }

  /** Calls `onInvalid` once, when the credential is no longer valid. Dispose the result to stop watching. */
  watch(credential: string | undefined, onInvalid: (error: SandboxError) => void): Disposable {
    const watched = { credential, onInvalid };
    this.#watched.add(watched);
    this.#stop ??= this.#clock.schedule(INTERVAL_MS, () => this.#check());
    return { [Symbol.dispose]: () => this.#forget(watched) };
  }

  #check(): void {
    this.#stop = undefined;
    for (const watched of [...this.#watched]) {
      try {
        this.#authenticator.authenticate(watched.credential);
      } catch (thrown) {
        this.#watched.delete(watched);
        watched.onInvalid(SandboxError.from(thrown));
      }
    }
    if (this.#watched.size > 0) this.#stop ??= this.#clock.schedule(INTERVAL_MS, () => this.#check());
  }

  #forget(watched: Watched): void {
    this.#watched.delete(watched);
    if (this.#watched.size > 0) return;
    this.#stop?.();
    this.#stop = undefined;
  }
}
