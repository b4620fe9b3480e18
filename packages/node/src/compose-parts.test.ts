import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { composeParts } from "./compose-parts.ts";
import { parseNodeConfig } from "./config/load-node-config.ts";

it("offers the provider that isolates nothing only on a node that was started for it", () => {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-parts-"));
  try {
    for (const [defaultProvider, names] of [
      ["gvisor", ["gvisor"]],
      ["local", ["gvisor", "local"]],
    ] as const) {
      const { providers, database } = composeParts(parseNodeConfig({ home, defaultProvider }), { onError: () => {} });
      expect([...providers.byName.keys()]).toEqual(names);
      database[Symbol.dispose]();
    }
  } finally {
    rmSync(home, { recursive: true });
  }
});
