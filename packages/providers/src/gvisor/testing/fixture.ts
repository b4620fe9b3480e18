import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import { GvisorProvider } from "../provider.ts";

/** A provider with a state directory of its own; everything in it is removed at the end. */
export interface GvisorFixture extends AsyncDisposable {
  readonly provider: GvisorProvider;
  readonly stateDirectory: string;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
}

/** Fails when this host cannot run gVisor: a suite that silently did not run would prove nothing. */
export async function createGvisorFixture(): Promise<GvisorFixture> {
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-gvisor-"));
  const provider = new GvisorProvider({ stateDirectory });
  const dispose = async () => {
    for (const { id } of await provider.list()) await provider.remove(id);
    await rm(stateDirectory, { recursive: true });
  };
  const status = await provider.probe();
  if (!status.available) {
    await rm(stateDirectory, { recursive: true });
    throw new Error(`The tests of gVisor cannot run on this host: ${status.reason}. To mend it: ${status.hint}.`);
  }
  return {
    provider,
    stateDirectory,
    create: (options) => Sandbox.create(provider, { diskMib: 64, ...options }),
    [Symbol.asyncDispose]: dispose,
  };
}
