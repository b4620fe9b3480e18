import { RunscInstance } from "../runsc/runsc-instance.ts";
import { type RunscTemplate, runscTemplate } from "../runsc/runsc-template.ts";
import { timed } from "../timed-run.ts";
import type { Workspace } from "../workspace.ts";
import type { Restored, Saveable } from "./saveable.ts";

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}\n';
const TRUE = '{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":"true"}}\n';

/** Uses runsc directly, with the bundle, the flags and the agent of Sandpiper. */
export class RawSaveable implements Saveable {
  readonly #template: RunscTemplate;
  readonly #instance: RunscInstance;

  private constructor(template: RunscTemplate, instance: RunscInstance) {
    this.#template = template;
    this.#instance = instance;
  }

  static async start(workspace: Workspace): Promise<RawSaveable> {
    const template = await runscTemplate(workspace);
    const instance = await RunscInstance.prepare(template);
    await instance.start(PING);
    return new RawSaveable(template, instance);
  }

  async use(execs: number): Promise<void> {
    await this.#instance.ask(TRUE, execs);
  }

  checkpoint(directory: string, { keepsRunning }: { readonly keepsRunning: boolean }): Promise<number> {
    return timed(() => this.#instance.checkpoint(directory, { leaveRunning: keepsRunning }));
  }

  async restore(directory: string): Promise<Restored> {
    const instance = await RunscInstance.prepare(this.#template);
    const tookMs = await timed(() => instance.restore(directory, PING));
    return { sandbox: new RawSaveable(this.#template, instance), tookMs, preparedMs: 0 };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#instance[Symbol.asyncDispose]();
  }
}
