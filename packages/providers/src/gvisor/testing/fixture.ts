import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import { GvisorProvider } from "../provider.ts";

/** A provider with its own state directory, which is removed at the end. */
export interface GvisorFixture extends AsyncDisposable {
  readonly provider: GvisorProvider;
  readonly stateDirectory: string;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
}

/** Fails when this host cannot run gVisor, because a suite that is silently skipped proves nothing. */
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
    throw new Error(`gVisor's tests cannot run on this host: ${status.reason}. Remedy: ${status.hint}.`);
  }
  return {
    provider,
    stateDirectory,
    create: (options) => Sandbox.create(provider, { diskMib: 64, ...options }),
    [Symbol.asyncDispose]: dispose,
  };
}
