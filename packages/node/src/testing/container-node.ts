import type { Provider, SandboxError } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { NodeConfigOptions } from "../config/node-config.ts";
import { testDomain } from "./test-domain.ts";

export interface ContainerNodeOptions {
  readonly home: string;
  readonly config?: NodeConfigOptions | undefined;
  readonly provider: Provider;
}

/** A node's domain with one given provider, and the principal of a key. */
export function containerNode({ home, config = {}, provider }: ContainerNodeOptions) {
  const clock = new FakeClock();
  const errors: SandboxError[] = [];
  const parts = testDomain(parseNodeConfig({ docker: { image: "base:1" }, ...config, home }), {
    clock,
    providers: [provider],
    onError: (error) => errors.push(error),
  });
  const owner = parts.authenticator.authenticate(parts.keys.create({ name: "test", tenant: "mine" }).key);
  /** Simulates the death of the node's process. */
  const abandon = () => {
    parts.registry.release();
    parts.database[Symbol.dispose]();
  };
  return {
    ...parts,
    clock,
    errors,
    owner,
    kinds: () => parts.events.list({ after: 0, limit: 100 }).map(({ kind }) => kind),
    abandon,
    [Symbol.asyncDispose]: async () => {
      await parts.pool.close();
      abandon();
    },
  };
}
