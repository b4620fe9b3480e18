import { runningInstances } from "./running-instances.ts";

const LOOK_MS = 20;

export interface InstanceWatchOptions {
  /** Of the nodes, as the names of cgroups have them. */
  readonly places: readonly string[];
  readonly onOverlap: (sandbox: string, places: readonly string[]) => void;
}

/** Looks all the time whether any sandbox runs in two places at once. */
export class InstanceWatch implements Disposable {
  readonly #options: InstanceWatchOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #told = new Set<string>();
  #looks = 0;
  #seen = 0;

  constructor(options: InstanceWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  get looks(): number {
    return this.#looks;
  }

  /** How many running instances it saw, over all looks: without any it would be blind. */
  get seen(): number {
    return this.#seen;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.#looks++;
    for (const [id, places] of runningInstances(this.#options.places)) {
      this.#seen += places.length;
      const name = [id, ...places].join(" ");
      if (places.length < 2 || this.#told.has(name)) continue;
      // Places are read one after the other: a sandbox may have gone from one to the next meanwhile.
      const again = runningInstances(this.#options.places).get(id) ?? [];
      if (again.length < 2) continue;
      this.#told.add(name);
      this.#options.onOverlap(id, again);
    }
  }
}
