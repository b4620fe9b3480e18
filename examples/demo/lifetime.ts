import type { Sandbox } from "@sandpiper/core";
import { type CreateSandboxOptions, createSandbox } from "@sandpiper/node";

const interruption = new AbortController();
const creations = new Set<Promise<Sandbox>>();

/** Like createSandbox, and remembers the sandbox so that an interruption destroys it. */
export function createDemoSandbox(options: CreateSandboxOptions): Promise<Sandbox> {
  const creation = createSandbox({ provider: "gvisor", signal: interruption.signal, ...options });
  creations.add(creation);
  return creation;
}

export function destroyAllOnInterruption(): void {
  const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const;
  for (const [signal, exitCode] of Object.entries(exitCodes)) {
    process.once(signal, async () => {
      interruption.abort();
      await Promise.allSettled([...creations].map(async (creation) => (await creation).destroy()));
      process.exit(exitCode);
    });
  }
}
