import type { ContainerEvent } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { EngineFixture } from "./fixture.ts";

/** Reads a watch, and keeps all events. */
export class Watch implements AsyncDisposable {
  readonly seen: ContainerEvent[] = [];
  readonly #abort = new AbortController();
  readonly #events: AsyncIterator<ContainerEvent>;

  constructor({ provider }: EngineFixture) {
    this.#events = provider.containers.watch(this.#abort.signal)[Symbol.asyncIterator]();
  }

  async next(): Promise<ContainerEvent> {
    const { value, done } = await this.#events.next();
    if (done) throw new Error("the watch ended");
    this.seen.push(value);
    return value;
  }

  /** The kinds of one sandbox's events, up to the given kind. */
  async kinds(id: SandboxId, last: ContainerEvent["kind"]): Promise<string[]> {
    while (!this.seen.some((event) => event.id === id && event.kind === last)) await this.next();
    return this.seen.filter((event) => event.id === id).map(({ kind }) => kind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#events.return?.();
  }
}
