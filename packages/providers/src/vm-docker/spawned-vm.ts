import type { ChildProcess } from "node:child_process";
import type { InstanceExit, Vm } from "@sandpiper/core";
import { callEngine } from "./engine-http.ts";

const ENGINE_TIMEOUT_MS = 60_000;
const RETRY_MS = 100;

export interface SpawnedVmOptions extends Pick<Vm, "id" | "projectId" | "directory" | "engineUrl" | "consoleLog"> {
  /** It runs for as long as the machine does. */
  readonly child: ChildProcess;
  /** Ends it and removes every trace. */
  readonly remove: () => Promise<void>;
}

/** A machine that is a program of this system, and ends with it. */
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
    // Nothing of it is of use to anybody any more.
    this.exited.then(() => remove()).catch(() => {});
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await this.#remove();
  }

  /** Tries until the engine answers, the machine has ended or the time is up. */
  async untilAnswering(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    this.exited.then(({ message }) =>
      ended.abort(new Error(`the machine ended before its engine answered: ${message}`)),
    );
    const any = AbortSignal.any([signal, ended.signal, AbortSignal.timeout(ENGINE_TIMEOUT_MS)]);
    for (;;) {
      try {
        await callEngine(this.engineUrl, { method: "GET", path: "/_ping", signal: any });
        return;
      } catch {
        any.throwIfAborted();
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  #exit(code: number | null, signal: NodeJS.Signals | null): InstanceExit {
    if (this.#isDestroyed) return { reason: "destroyed", message: "it was destroyed" };
    return { reason: "crashed", message: `its program ended with ${signal ?? `exit code ${code}`}` };
  }
}
