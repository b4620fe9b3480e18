import type { Clock } from "@sandpiper/core";
import { SandboxError } from "@sandpiper/protocol";
import type { Authenticator } from "./principal.ts";

/** What is revoked, expired or destroyed lets nobody stay for much longer than this. */
const INTERVAL_MS = 500;

interface Watched {
  readonly credential: string | undefined;
  readonly ended: (error: SandboxError) => void;
}

/** Looks again and again whether those who stay connected are still let in: one timer for all of them. */
export class CredentialWatch {
  readonly #authenticator: Pick<Authenticator, "authenticate">;
  readonly #clock: Clock;
  readonly #watched = new Set<Watched>();
  #stop: (() => void) | undefined;

  constructor(authenticator: Pick<Authenticator, "authenticate">, clock: Clock) {
    this.#authenticator = authenticator;
    this.#clock = clock;
  }

  /** Calls `ended` once when the credential is not valid any more, unless what this returns was disposed before. */
  watch(credential: string | undefined, ended: (error: SandboxError) => void): Disposable {
    const watched = { credential, ended };
    this.#watched.add(watched);
    this.#stop ??= this.#clock.schedule(INTERVAL_MS, () => this.#look());
    return { [Symbol.dispose]: () => this.#forget(watched) };
  }

  #look(): void {
    this.#stop = undefined;
    for (const watched of [...this.#watched]) {
      try {
        this.#authenticator.authenticate(watched.credential);
      } catch (thrown) {
        this.#watched.delete(watched);
        watched.ended(SandboxError.from(thrown));
      }
    }
    if (this.#watched.size > 0) this.#stop ??= this.#clock.schedule(INTERVAL_MS, () => this.#look());
  }

  #forget(watched: Watched): void {
    this.#watched.delete(watched);
    if (this.#watched.size > 0) return;
    this.#stop?.();
    this.#stop = undefined;
  }
}
