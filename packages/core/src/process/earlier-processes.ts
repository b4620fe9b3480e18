import type { SandboxError, SandboxId } from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import type { Instance } from "../provider.ts";
import { noSuchProcess, processLost } from "./no-such-process.ts";

/** Clients repeat a start for a minute or so; no sandbox starts that many processes without an answer meanwhile. */
const MOST = 1000;

/**
 * The processes that a sandbox lost when it was restored from a checkpoint of files. Their changes to these files are in the
 * checkpoint, so a client that does not know whether one of them was started must not start it a second time.
 */
export class EarlierProcesses {
  readonly #sandbox: SandboxId;
  readonly #ids: readonly string[];
  readonly #hasLost: boolean;

  /** `hasLost`: the sandbox was started or restored without its earlier processes, whose ids may be unknown. */
  constructor({ id, earlierProcesses = [] }: Pick<Instance, "id" | "earlierProcesses">, hasLost = false) {
    this.#sandbox = id;
    this.#ids = earlierProcesses;
    this.#hasLost = hasLost;
  }

  /** The error for a process that the agent does not know. */
  missing(process: string): SandboxError {
    return this.#hasLost ? processLost(this.#sandbox, process) : noSuchProcess(this.#sandbox, process);
  }

  /** Rejects the repeated start of a process that ran before the checkpoint. */
  refuse(process: string): void {
    if (this.#ids.includes(process)) throw processLost(this.#sandbox, process);
  }

  /** The ids for the next checkpoint. Call it in the turn of the quiesce, so that no process starts in between. */
  async next(client: AgentClient): Promise<readonly string[]> {
    const { processes } = await client.call("process.list", {});
    return [...this.#ids, ...processes.map(({ process }) => process)].slice(-MOST);
  }
}
