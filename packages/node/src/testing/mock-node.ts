import type { Provider, SandboxError } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import type { CreateKeyBody, CreateSandboxBody } from "@sandpiper/protocol";
import { onTestFinished } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { NodeConfigOptions } from "../config/node-config.ts";
import type { CreateOptions } from "../sandboxes/sandbox-service.ts";
import { ScratchHome } from "./scratch-home.ts";
import { testDomain } from "./test-domain.ts";

export interface MockNodeOptions<P> {
  readonly provider: P;
  readonly home?: string | undefined;
  readonly config?: NodeConfigOptions | undefined;
}

/** A node's domain with simulated sandboxes, and the principal of a key. It ends with the test. */
export function mockNode<P extends Provider & { die(): P }>(options: MockNodeOptions<P>) {
  const { provider, home = new ScratchHome().path, config = {} } = options;
  const clock = new FakeClock();
  const errors: SandboxError[] = [];
  const observed: string[] = [];
  const parts = testDomain(parseNodeConfig({ docker: { image: "base:1" }, ...config, home }), {
    clock,
    providers: [provider],
    onError: (error) => errors.push(error),
    observeExec: (name) => observed.push(name),
  });
  const principal = (body: Partial<CreateKeyBody> = {}) =>
    parts.authenticator.authenticate(parts.keys.create({ name: "test", tenant: "mine", ...body }).key);
  const owner = principal();
  const abandon = () => {
    parts.registry.release();
    parts.database[Symbol.dispose]();
  };
  onTestFinished(async () => {
    await parts.prepared[Symbol.asyncDispose]();
    await parts.pool.close();
    abandon();
  });
  return {
    ...parts,
    home,
    clock,
    provider,
    errors,
    /** The provider of each command that has ended. */
    observed,
    principal,
    owner,
    create: (body: CreateSandboxBody = {}, more: CreateOptions = {}) =>
      parts.sandboxes.create(owner, { provider: "mock", ...body }, more),
    get: (id: string) => parts.sandboxes.get(owner, id),
    open: (id: string) => parts.access.open(owner, id, { readOnly: false }),
    kinds: () => parts.events.list({ after: 0, limit: 1000 }).map(({ kind }) => kind),
    /** Simulates the death of the node's process. Returns the provider of its next process. */
    die: () => {
      abandon();
      return provider.die();
    },
  };
}
