import type { SandboxId } from "@sandpiper/protocol";
import type { Provider, ProviderCapabilities } from "../provider.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { SandboxConfigOptions } from "../sandbox/sandbox-config.ts";
import type { HostPrograms } from "./host-programs.ts";

/** The part of a test framework that the suite uses; Vitest's names fit. */
export interface TestFramework {
  readonly describe: (title: string, body: () => void) => unknown;
  readonly it: TestFunction & { readonly skip: TestFunction };
  readonly beforeAll: (body: () => Promise<void>) => unknown;
  readonly afterAll: (body: () => Promise<void>) => unknown;
  readonly expect: (actual: unknown, message?: string) => Expectation;
}

type TestFunction = (title: string, body: () => Promise<void>) => unknown;

export interface Expectation {
  toBe(expected: unknown): unknown;
  toEqual(expected: unknown): unknown;
  toMatchObject(expected: object): unknown;
  toContain(expected: unknown): unknown;
  toBeGreaterThan(expected: number): unknown;
  toBeInstanceOf(expected: unknown): unknown;
}

/** What the suite must know about a provider and cannot learn through its interface. */
export interface ProviderContractOptions {
  readonly framework: TestFramework;
  /** The expected capabilities; they decide which tests are skipped. */
  readonly capabilities: ProviderCapabilities;
  /** Kills an instance from outside, like a fault. */
  readonly crash: (provider: Provider, id: SandboxId) => Promise<void>;
  /** Lists everything on the host that still belongs to a sandbox. */
  readonly leftovers: (provider: Provider, id: SandboxId) => Promise<readonly string[]>;
  /** What `leftovers` must list while a sandbox runs, such as its process and its directory. */
  readonly traces?: readonly RegExp[];
  /** Starts programs beside the tests, which kill them; or the reason why the suite skips those tests. */
  readonly programs: HostPrograms | { readonly skipped: string };
  /** Set where the suite cannot use the network of sandboxes. */
  readonly network?: { readonly skipped: string };
  /** Makes an empty directory of the host for a checkpoint. Needed where there are checkpoints. */
  readonly makeDirectory?: () => Promise<string>;
  /** The configuration of every sandbox in the suite. */
  readonly config?: SandboxConfigOptions;
}

/** What each part of the suite works with. */
export interface ContractContext extends ProviderContractOptions {
  /** The provider under test, once the tests run. */
  readonly provider: () => Provider;
}

/** What the parts about checkpoints work with. */
export interface CheckpointContext extends ContractContext {
  readonly makeDirectory: () => Promise<string>;
  /** Restores a saved sandbox under its own id or another. */
  readonly restore: (directory: string, id: SandboxId, saved: Sandbox) => Promise<Sandbox>;
}
