import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createProvider } from "@sandpiper/node";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import type { SandboxId } from "@sandpiper/protocol";
import { onTestFinished } from "vitest";
import { listLeft } from "../../bench/leftovers.ts";

/** A directory for nodes on gVisor; disposing it removes its instances and files. */
export class GvisorHome implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), "sandpiper-node-"));
  readonly #provider = createProvider("gvisor", { home: join(this.path, "node") });

  /** `atEnd` is `afterAll` for a directory that the tests of a file share. */
  constructor(atEnd: (work: () => Promise<void>) => void = onTestFinished) {
    // A test that times out does not dispose its resources.
    atEnd(() => this[Symbol.asyncDispose]());
  }

  config(settings: NodeConfigOptions = {}): NodeConfigOptions {
    return { home: this.path, port: 0, logLevel: "warn", ...settings };
  }

  async instances(): Promise<readonly string[]> {
    return (await this.#provider.list()).map(({ id }) => id).sort();
  }

  async running(): Promise<readonly string[]> {
    return (await this.#provider.list()).filter(({ isRunning }) => isRunning).map(({ id }) => id);
  }

  async removeInstance(id: SandboxId): Promise<void> {
    await this.#provider.remove(id);
  }

  /** Ends all instances, like a power failure. */
  async removeInstances(): Promise<void> {
    for (const { id } of await this.#provider.list()) await this.#provider.remove(id);
  }

  /** Processes, mounts, cgroups and files of these instances. */
  async left(ids: readonly string[]): Promise<string[]> {
    const left = await listLeft(join(this.path, "node"), ids);
    return left.filter((one) => ids.some((id) => one.includes(id)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.removeInstances();
    rmSync(this.path, { recursive: true, force: true });
  }
}
