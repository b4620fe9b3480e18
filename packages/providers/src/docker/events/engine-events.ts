import type { Readable } from "node:stream";
import type { Clock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import { type ListedContainer, listContainers } from "../container/list-containers.ts";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";
import { readLines } from "../engine/read-lines.ts";
import { type EngineEvent, engineActions, parseEngineEvent } from "./engine-event.ts";

/** An engine that restarts is away for a second or two. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;

export type PresentContainers = ReadonlyMap<SandboxId, ListedContainer>;

export interface EngineEventsListener {
  /** What is there now, first of all and after each time that the engine was away; events follow it without a gap. */
  began(present: PresentContainers, context: { readonly wasEngineAway: boolean }): void;
  happened(event: EngineEvent): void;
}

export interface EngineEventsOptions {
  readonly engine: Engine;
  readonly home: string;
  readonly clock: Clock;
}

/** One subscription to what the engine tells of this home's containers, for as long as anybody listens. */
export class EngineEvents {
  readonly #options: EngineEventsOptions;
  readonly #listeners = new Set<EngineEventsListener>();
  #ending: AbortController | undefined;
  #isLive = false;

  constructor(options: EngineEventsOptions) {
    this.#options = options;
  }

  /** The answer ends it. Whoever comes while it is live is told at once what is there if it wants that. */
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
        // Whatever it was: the engine is away, and nobody can be told more than that.
      }
      // A new run may have begun meanwhile.
      if (signal.aborted) return;
      this.#isLive = false;
      wasEngineAway = true;
      await this.#pause(pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  async #listen(signal: AbortSignal, onLive: (present: PresentContainers) => void): Promise<void> {
    const { engine, home } = this.#options;
    const filters = { type: ["container"], event: [...engineActions], label: [`${label.home}=${home}`] };
    // It can be aborted, though its types do not say so.
    const options = { filters, abortSignal: signal } as Docker.GetEventsOptions;
    const stream = (await engine.docker.getEvents(options)) as unknown as Readable;
    try {
      // What happens meanwhile waits in the stream.
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

  /** Holds events back until the listener knows what is there. */
  #informed(listener: EngineEventsListener): EngineEventsListener {
    const { engine, home } = this.#options;
    let held: EngineEvent[] | undefined = [];
    const release = () => {
      const events = held ?? [];
      held = undefined;
      for (const event of events) listener.happened(event);
    };
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
        listener.began(present, { wasEngineAway: false });
        release();
      },
      // An engine that cannot list is about to go away, and what is there is told when it is back.
      () => {},
    );
    return joined;
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        stopTimer();
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const stopTimer = this.#options.clock.schedule(ms, wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
