import type { ContainerEvent } from "@sandpiper/core";
import type { ProjectEngine } from "./project-engine.ts";
import type { ProjectEngines } from "./project-engines.ts";

/** The container events of all machines, including those that start later. */
export async function* watchEngines(engines: ProjectEngines, signal: AbortSignal): AsyncGenerator<ContainerEvent> {
  const events: ContainerEvent[] = [];
  let failure: unknown;
  let wake = () => {};
  const follow = async ({ provider, gone }: ProjectEngine) => {
    const until = AbortSignal.any([signal, gone]);
    try {
      for await (const event of provider.containers?.watch(until) ?? []) {
        events.push(event);
        wake();
      }
    } catch (thrown) {
      if (!until.aborted) failure ??= thrown;
      wake();
    }
  };
  const stop = engines.onAdded((engine) => void follow(engine));
  const onAbort = () => wake();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (const engine of engines.all) void follow(engine);
    while (!signal.aborted) {
      if (failure !== undefined) throw failure;
      const next = events.shift();
      if (next !== undefined) yield next;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    stop();
    signal.removeEventListener("abort", onAbort);
  }
}
