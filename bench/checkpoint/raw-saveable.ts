import { PING, RunscInstance } from "../runsc/runsc-instance.ts";
import { type RunscTemplate, runscTemplate } from "../runsc/runsc-template.ts";
import { timed } from "../timed-run.ts";
import type { Workspace } from "../workspace.ts";
import type { Saveable } from "./saveable.ts";

const TRUE = '{"jsonrpc":"2.0","id":1,"method":"exec","params":{"cmd":"true"}}\n';

/** Uses runsc directly, with the bundle, the flags and the agent of Sandpiper. */
export async function startRaw(workspace: Workspace): Promise<Saveable> {
  const template = await runscTemplate(workspace);
  const instance = await RunscInstance.prepare(template);
  await instance.start(PING);
  return raw(template, instance);
}

function raw(template: RunscTemplate, instance: RunscInstance): Saveable {
  return {
    use: (execs) => instance.ask(TRUE, execs),
    checkpoint: (directory, options) => timed(() => instance.checkpoint(directory, options)),
    async restore(directory) {
      const restored = await RunscInstance.prepare(template);
      const tookMs = await timed(() => restored.restore(directory, PING));
      return { sandbox: raw(template, restored), tookMs, preparedMs: 0 };
    },
    [Symbol.asyncDispose]: () => instance[Symbol.asyncDispose](),
  };
}
