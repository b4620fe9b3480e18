import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HOOK = fileURLToPath(new URL("clock-shift.ts", import.meta.url));

/** The wall clock of one node, which a test can set without changing the machine's. */
export class NodeClock {
  readonly env: NodeJS.ProcessEnv;
  readonly #file: string;
  readonly #reread: () => void;

  /** `reread` sends SIGUSR2 to the node. */
  constructor(file: string, reread: () => void) {
    this.#file = file;
    this.#reread = reread;
    this.env = { NODE_OPTIONS: `--import=${HOOK}`, CHAOS_CLOCK_FILE: file };
  }

  shift(byMs: number): void {
    if (byMs === 0) rmSync(this.#file, { force: true });
    else writeFileSync(this.#file, String(byMs));
    this.#reread();
  }
}
