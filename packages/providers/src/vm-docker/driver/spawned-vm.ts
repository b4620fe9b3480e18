import type { ChildProcess } from "node:child_process";
import type { InstanceExit } from "@sandpiper/core";
import type { Vm } from "../vm/vm-driver.ts";
import { untilEngineAnswers } from "./engine-http.ts";

const ENGINE_TIMEOUT_MS = 60_000;

export interface SpawnedVmOptions extends Pick<Vm, "id" | "projectId" | "directory" | "engineUrl" | "consoleLog"> {
  /** Runs as long as the machine. */
  readonly child: ChildProcess;
  /** Ends the machine and removes every trace. */
  readonly remove: () => Promise<void>;
}

/** A machine that is a child process of this program. */
export class SpawnedVm implements Vm {
  readonly id: string;
  readonly projectId: string;
  readonly directory: string;
  readonly engineUrl: string;
  readonly consoleLog: string | undefined;
  readonly exited: Promise<InstanceExit>;
  readonly #remove: () => Promise<void>;
  #isDestroyed = false;

  constructor({ child, remove, ...options }: SpawnedVmOptions) {
    this.id = options.id;
    this.projectId = options.projectId;
    this.directory = options.directory;
    this.engineUrl = options.engineUrl;
    this.consoleLog = options.consoleLog;
    this.#remove = remove;
    this.exited = new Promise((resolve) => {
      child.once("error", (error) => resolve({ reason: "crashed", message: error.message }));
      child.once("exit", (code, signal) => resolve(this.#exit(code, signal)));
    });
    // An ended machine cannot be restarted.
    this.exited.then(() => remove()).catch(() => {});
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await this.#remove();
  }

  /** Resolves when the engine answers; rejects when the machine ends, or after a minute. */
  async untilAnswering(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    this.exited.then(({ message }) =>
      ended.abort(new Error(`the machine ended before its engine answered: ${message}`)),
    );
    const limit = AbortSignal.timeout(ENGINE_TIMEOUT_MS);
    await untilEngineAnswers(this.engineUrl, AbortSignal.any([signal, ended.signal, limit]));
  }

  #exit(code: number | null, signal: NodeJS.Signals | null): InstanceExit {
    if (this.#isDestroyed) return { reason: "destroyed", message: "it was destroyed" };
    return { reason: "crashed", message: `its process ended with ${signal ?? `exit code ${code}`}` };
  }
}
