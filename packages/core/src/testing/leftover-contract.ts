import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import type { Provider } from "../provider.ts";
import { Sandbox } from "../sandbox/sandbox.ts";
import { eventually } from "./contract-sandbox.ts";
import type { HostPrograms } from "./host-programs.ts";
import type { ContractContext } from "./provider-contract.ts";

/** The moments of a creation at which it is interrupted, as shares of the time that one creation takes. */
const MOMENTS = [0, 0.2, 0.4, 0.6, 0.8, 1];

/** Nothing of a sandbox stays on the host, however it ends. */
export function describeLeftovers(context: ContractContext): void {
  const { framework, provider, config, leftovers, programs, traces = [] } = context;
  const { describe, it, beforeAll, expect } = framework;

  describe("leftovers", () => {
    let creationMs = 0;
    beforeAll(async () => {
      await (await Sandbox.create(provider(), { ...config })).destroy();
      const startedAtMs = performance.now();
      const sandbox = await Sandbox.create(provider(), { ...config });
      creationMs = performance.now() - startedAtMs;
      await sandbox.destroy();
    });

    it("leaves nothing of a sandbox that is destroyed several times at once", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      const before = await leftovers(provider(), sandbox.id);
      for (const kind of traces) {
        expect(
          before.some((trace) => kind.test(trace)),
          `a trace ${kind} of a running sandbox`,
        ).toBe(true);
      }
      await Promise.all([sandbox.destroy(), sandbox.destroy()]);
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("removes a running sandbox by its id alone, and its owner learns why it ended", async () => {
      const sandbox = await Sandbox.create(provider(), { ...config });
      const other = "skipped" in programs ? provider() : programs.next();
      await other.remove(sandbox.id);
      const { reason } = await sandbox.closed;
      if (context.capabilities.supportsAdopt) expect(reason).toBe("destroyed");
      expect(await sandbox.isHealthy()).toBe(false);
      await sandbox.destroy();
      expect(await leftovers(provider(), sandbox.id)).toEqual([]);
    });

    it("leaves nothing when an unknown id is removed", async () => {
      const id = createSandboxId();
      await provider().remove(id);
      expect(await leftovers(provider(), id)).toEqual([]);
    });

    for (const moment of MOMENTS) {
      it(`leaves nothing when a creation is canceled ${moment * 100} % of the way`, async () => {
        const id = createSandboxId();
        const abort = new AbortController();
        const creation = Sandbox.create(provider(), { ...config }, { id, signal: abort.signal });
        if (moment === 0) abort.abort();
        else setTimeout(() => abort.abort(), moment * creationMs);
        // A creation may be faster than its abort; then it made a sandbox.
        await creation.then(
          (sandbox) => sandbox.destroy(),
          (error) => expect(error.code).toBe("canceled"),
        );
        expect(await leftovers(provider(), id)).toEqual([]);
      });
    }

    if ("skipped" in programs) {
      it.skip(`leaves nothing of a killed program that its successor cannot find (skipped: ${programs.skipped})`, async () => {});
    } else describeKilledPrograms(context, programs, () => creationMs);
  });
}

function describeKilledPrograms(context: ContractContext, programs: HostPrograms, creationMs: () => number): void {
  const { framework, config, leftovers, capabilities } = context;
  const { it, expect } = framework;

  it("lists a sandbox as an orphan once its program was killed, and removes it", async () => {
    const program = programs.start({ config: { ...config } });
    const { id } = await program.ready();
    const next = programs.next();
    expect(await find(next, id)).toMatchObject({ isRunning: true, isOrphan: false });
    await program.kill();
    expect(await find(next, id)).toMatchObject({ isRunning: capabilities.supportsAdopt, isOrphan: true });
    await next.remove(id);
    expect(await find(next, id)).toBe(undefined);
    await untilProcessesEnded(() => leftovers(next, id));
    expect(await leftovers(next, id)).toEqual([]);
  });

  for (const moment of MOMENTS) {
    it(`leaves nothing that cannot be found when its program is killed ${moment * 100} % into a creation`, async () => {
      const program = programs.start({ config: { ...config } });
      const id = await program.creating();
      await new Promise((resolve) => setTimeout(resolve, moment * creationMs()));
      await program.kill();
      await programs.settle?.(id);
      const next = programs.next();
      const found = await find(next, id);
      if (found !== undefined) await next.remove(id);
      await untilProcessesEnded(() => leftovers(next, id));
      expect(await leftovers(next, id), `found: ${found !== undefined}`).toEqual([]);
    });
  }
}

/** Processes that end with their program may take a moment. */
function untilProcessesEnded(leftovers: () => Promise<readonly string[]>): Promise<void> {
  return eventually(async () => !(await leftovers()).some((trace) => trace.startsWith("process ")));
}

async function find(provider: Provider, id: SandboxId) {
  return (await provider.list()).find((record) => record.id === id);
}
