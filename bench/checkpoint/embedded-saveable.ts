import { type Provider, Sandbox } from "@sandpiper/core";
import { createProvider } from "@sandpiper/node";
import { createSandboxId } from "@sandpiper/protocol";
import { timed } from "../timed-run.ts";
import type { Workspace } from "../workspace.ts";
import type { Restored, Saveable } from "./saveable.ts";

/** Through Sandpiper's core and its gvisor provider, without a node and without a store. */
export class EmbeddedSaveable implements Saveable {
  readonly #provider: Provider;
  readonly #sandbox: Sandbox;

  private constructor(provider: Provider, sandbox: Sandbox) {
    this.#provider = provider;
    this.#sandbox = sandbox;
  }

  static async start(workspace: Workspace): Promise<EmbeddedSaveable> {
    const provider = createProvider("gvisor", { home: await workspace.makeDir("embedded") });
    return new EmbeddedSaveable(provider, await Sandbox.create(provider, {}, { signal: workspace.signal }));
  }

  async use(execs: number): Promise<void> {
    for (let k = 0; k < execs; k++) await this.#sandbox.exec("true");
  }

  checkpoint(directory: string, options: { readonly keepsRunning: boolean }): Promise<number> {
    return timed(() => this.#sandbox.checkpoint(directory, options));
  }

  async restore(directory: string): Promise<Restored> {
    const provider = this.#provider;
    const { config, createdAt } = this.#sandbox;
    const startedAt = performance.now();
    const prepared = await Sandbox.prepare(provider, config, { id: createSandboxId() });
    const preparedAt = performance.now();
    const sandbox = await Sandbox.restore(provider, config, { prepared, directory, createdAt });
    const tookMs = performance.now() - startedAt;
    return { sandbox: new EmbeddedSaveable(provider, sandbox), tookMs, preparedMs: preparedAt - startedAt };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.destroy();
  }
}
