import type { Readable } from "node:stream";
import { type Clock, pause } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { type ListedContainer, listContainers } from "../container/list-containers.ts";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";
import { readLines } from "../engine/read-lines.ts";
import { type EngineEvent, engineActions, parseEngineEvent } from "./engine-event.ts";

/** An engine restarts within a second or two. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;

export type PresentContainers = ReadonlyMap<SandboxId, ListedContainer>;

export interface EngineEventsListener {
  /** The current containers, first and after each interruption; later events follow without a gap. */
  began(present: PresentContainers, context: { readonly wasEngineAway: boolean }): void;
  happened(event: EngineEvent): void;
}

export interface EngineEventsOptions {
  readonly engine: Engine;
  readonly home: string;
  readonly clock: Clock;
}

/** One subscription to the engine's events of this home's containers, as long as there are listeners. */
export class EngineEvents {
  readonly #options: EngineEventsOptions;
  readonly #listeners = new Set<EngineEventsListener>();
  #ending: AbortController | undefined;
  #isLive = false;

  constructor(options: EngineEventsOptions) {
    this.#options = options;
  }

  /** Returns a function that ends the subscription. With `wantsPresent`, a late listener first gets the current containers. */
  subscribe(listener: EngineEventsListener, { wantsPresent }: { readonly wantsPresent: boolean }): () => void {
    const joined = wantsPresent && this.#isLive ? this.#informed(listener) : listener;
    this.#listeners.add(joined);
    if (this.#ending === undefined) {
      this.#ending = new AbortController();
      this.#run(this.#ending.signal);
    }
    return () => {
      this.#listeners.delete(joined);
      if (this.#listeners.size > 0) return;
      this.#ending?.abort();
      this.#ending = undefined;
      this.#isLive = false;
    };
  }

  async #run(signal: AbortSignal): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    let wasEngineAway = false;
    while (!signal.aborted) {
      try {
        await this.#listen(signal, (present) => {
          pauseMs = FIRST_PAUSE_MS;
          for (const listener of this.#listeners) listener.began(present, { wasEngineAway });
        });
      } catch {
        // Any failure means that the engine is down.
      }
      // A new run may have started in the meantime.
      if (signal.aborted) return;
      this.#isLive = false;
      wasEngineAway = true;
      await pause(this.#options.clock, pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  async #listen(signal: AbortSignal, onLive: (present: PresentContainers) => void): Promise<void> {
    const { engine, home } = this.#options;
    const filters = { type: ["container"], event: [...engineActions], label: [`${label.home}=${home}`] };
    // The types of dockerode omit the signal.
    const options = { filters, abortSignal: signal } as Docker.GetEventsOptions;
    const stream = (await engine.docker.getEvents(options)) as unknown as Readable;
    try {
      // Events during the listing wait in the stream.
      const present = await listContainers(engine, home, signal);
      if (signal.aborted) return;
      this.#isLive = true;
      onLive(present);
      for await (const line of readLines(stream)) {
        const event = parseEngineEvent(line);
        if (event === undefined || signal.aborted) continue;
        for (const listener of this.#listeners) listener.happened(event);
      }
    } finally {
      stream.on("error", () => {});
      stream.destroy();
    }
  }

  /** Holds events back until the listener has the current containers. */
  #informed(listener: EngineEventsListener): EngineEventsListener {
    const { engine, home } = this.#options;
    let held: EngineEvent[] | undefined = [];
    const joined: EngineEventsListener = {
      began: (present, context) => {
        held = undefined;
        listener.began(present, context);
      },
      happened: (event) => (held === undefined ? listener.happened(event) : held.push(event)),
    };
    listContainers(engine, home).then(
      (present) => {
        if (held === undefined || !this.#listeners.has(joined)) return;
        const events = held;
        joined.began(present, { wasEngineAway: false });
        for (const event of events) listener.happened(event);
      },
      // If the engine fails here, the next `began` follows when it is back.
      () => {},
    );
    return joined;
  }
}
