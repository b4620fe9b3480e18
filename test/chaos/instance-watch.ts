import { runningInstances, type WatchedEngine } from "./running-instances.ts";

const LOOK_MS = 20;

export interface InstanceWatchOptions {
  /** The nodes' suffixes of cgroup names. */
  readonly places: readonly string[];
  readonly engines?: readonly WatchedEngine[];
  readonly onOverlap: (sandbox: string, places: readonly string[]) => void;
}

/** Checks continuously that no sandbox runs on two nodes at once. */
export class InstanceWatch implements Disposable {
  readonly #options: InstanceWatchOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #reported = new Set<string>();
  #looks = 0;
  #seen = 0;

  constructor(options: InstanceWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  get looks(): number {
    return this.#looks;
  }

  /** The number of instances seen in all checks; 0 means that the watch does not work. */
  get seen(): number {
    return this.#seen;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    this.#looks++;
    const { places: nodes, engines } = this.#options;
    for (const [id, places] of runningInstances(nodes, engines)) {
      this.#seen += places.length;
      const name = [id, ...places].join(" ");
      if (places.length < 2 || this.#reported.has(name)) continue;
      // One check is not atomic: the sandbox may have moved during it.
      const again = runningInstances(nodes, engines).get(id) ?? [];
      if (again.length < 2) continue;
      this.#reported.add(name);
      this.#options.onOverlap(id, again);
    }
  }
}
