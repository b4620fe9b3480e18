import { type Provider, Sandbox } from "@sandpiper/core";
import { createProvider } from "@sandpiper/node";
import { createSandboxId } from "@sandpiper/protocol";
import { timed } from "../timed-run.ts";
import type { Workspace } from "../workspace.ts";
import type { Saveable } from "./saveable.ts";

/** Through Sandpiper's core and its gvisor provider, without a node and without a store. */
export async function startEmbedded(workspace: Workspace): Promise<Saveable> {
  const provider = createProvider("gvisor", { home: await workspace.makeDir("embedded") });
  return embedded(provider, await Sandbox.create(provider, {}, { signal: workspace.signal }));
}

function embedded(provider: Provider, sandbox: Sandbox): Saveable {
  return {
    async use(execs) {
      for (let k = 0; k < execs; k++) await sandbox.exec("true");
    },
    checkpoint: (directory, options) => timed(() => sandbox.checkpoint(directory, options)),
    async restore(directory) {
      const { config, createdAt } = sandbox;
      const startedAt = performance.now();
      const prepared = await Sandbox.prepare(provider, config, { id: createSandboxId() });
      const preparedAt = performance.now();
      const restored = await Sandbox.restore(provider, config, { prepared, directory, createdAt });
      const tookMs = performance.now() - startedAt;
      return { sandbox: embedded(provider, restored), tookMs, preparedMs: preparedAt - startedAt };
    },
    [Symbol.asyncDispose]: () => sandbox.destroy(),
  };
}
