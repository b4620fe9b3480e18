import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import type { NodeConfigOptions } from "../config/node-config.ts";
import { testDomain } from "../testing/test-domain.ts";

it("offers the default provider, and others only if they are configured", () => {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-parts-"));
  try {
    for (const [config, names] of [
      [{}, ["gvisor"]],
      [{ defaultProvider: "local" }, ["local"]],
      [{ providers: ["docker", "gvisor"] }, ["gvisor", "docker"]],
      [{ defaultProvider: "docker" }, ["docker"]],
    ] as const) {
      const { providers, database } = testDomain(parseNodeConfig({ home, ...config } as NodeConfigOptions), {
        onError: () => {},
      });
      expect([...providers.byName.keys()]).toEqual(names);
      database[Symbol.dispose]();
    }
  } finally {
    rmSync(home, { recursive: true });
  }
});
