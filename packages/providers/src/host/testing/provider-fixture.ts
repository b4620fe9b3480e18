import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Provider, Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import { describeProvider, type HostProgram, type HostProgramOptions } from "@sandpiper/core/testing";
import type { SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startHostProgram } from "./start-host-program.ts";

/** A provider with its own state directory, which is removed at the end. */
export interface ProviderFixture<P extends Provider, O> extends AsyncDisposable {
  readonly provider: P;
  readonly stateDirectory: string;
  /** The configuration of every sandbox. */
  readonly config: SandboxConfigOptions;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
  /** The provider of another program with the same state. */
  newProvider(options?: O): P;
  startProgram(options?: HostProgramOptions, provider?: O): HostProgram;
}

export interface ProviderFixtureOptions<P extends Provider, O> {
  readonly createProvider: (options: O) => P;
  /** The options of every provider. */
  readonly options?: O;
  readonly config: SandboxConfigOptions;
  /** The URL of a script that calls `runHostProgram`. */
  readonly program: URL;
}

/** Fails when this host cannot run the provider, because a suite that is silently skipped proves nothing. */
export async function createProviderFixture<
  P extends Provider,
  O extends { readonly stateDirectory?: string | undefined },
>({ createProvider, options, config, program }: ProviderFixtureOptions<P, O>): Promise<ProviderFixture<P, O>> {
  // A short path, because providers have sockets deep inside.
  const stateDirectory = await mkdtemp(join(tmpdir(), "sp-"));
  const withState = (more?: O) => ({ ...options, ...more, stateDirectory }) as O;
  const provider = createProvider(withState());
  const status = await provider.probe();
  if (!status.available) {
    await rm(stateDirectory, { recursive: true });
    throw new Error(`The tests of ${provider.name} cannot run on this host: ${status.reason}. Remedy: ${status.hint}.`);
  }
  return {
    provider,
    stateDirectory,
    config,
    create: (extra) => Sandbox.create(provider, { ...config, ...extra }),
    newProvider: (more) => createProvider(withState(more)),
    startProgram: (given = {}, more) =>
      startHostProgram(program, withState(more), { ...given, config: { ...config, ...given.config } }),
    [Symbol.asyncDispose]: async () => {
      for (const { id } of await provider.list()) await provider.remove(id);
      await rm(stateDirectory, { recursive: true });
    },
  };
}

export interface FixtureContractOptions {
  readonly isolation: "vm" | "user_space_kernel";
  readonly crash: (id: SandboxId) => Promise<void>;
  readonly tracesOf: (id: SandboxId, stateDirectory: string) => Promise<readonly string[]>;
  readonly traces: readonly RegExp[];
  readonly network?: { readonly skipped: string };
}

/** Runs the contract suite on a provider with its own kernel for each sandbox. */
export function describeFixture<P extends Provider, O>(
  title: string,
  fixture: ProviderFixture<P, O>,
  { isolation, crash, tracesOf, traces, ...options }: FixtureContractOptions,
): void {
  describeProvider(title, () => fixture.provider, {
    framework: { describe, it, beforeAll, afterAll, expect },
    capabilities: {
      isolation,
      checkpoint: "memory",
      limits: { memory: true, cpu: true, processes: true, disk: true },
      supportsAdopt: true,
      supportsUsers: true,
      supportsContainers: false,
      network: "redirected",
    },
    ...options,
    config: fixture.config,
    crash: (_provider, id) => crash(id),
    leftovers: (_provider, id) => tracesOf(id, fixture.stateDirectory),
    makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
    traces: [/^process /, /^\/sys\/fs\/cgroup\//, ...traces],
    programs: { start: (options) => fixture.startProgram(options), next: () => fixture.newProvider() },
  });
}
