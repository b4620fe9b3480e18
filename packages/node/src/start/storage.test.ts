import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { openStorage } from "./storage.ts";

const describe = () => ({ isDraining: false, sandboxes: 0 });
const options = { clock: systemClock, version: "1", describe, onError: () => {} };

it("the store of a standalone node is encrypted at its first start, and clear text is refused afterwards", async () => {
  const config = parseNodeConfig({ home: new ScratchHome().path });
  const open = async () => {
    const storage = await openStorage(config, options);
    storage.database[Symbol.dispose]();
    return storage;
  };
  const key = `states/${createSandboxId()}.state`;
  const earlier = Buffer.from(JSON.stringify({ record: { tenant: "mine", env: { TOKEN: "hunter2" } } }));
  // A store without the marker, as an earlier version left it.
  await new DirectoryStore(`${config.home}/store`).put(key, earlier);
  const { store } = await open();
  const sealed = Buffer.from((await store.get(key))?.bytes ?? []);
  expect([sealed[0], sealed.includes("hunter2")]).toEqual([2, false]);
  await store.put(key, earlier);
  const { keyring } = await open();
  const states = new SealedStates(store, keyring);
  expect(await rejection(states.get(key))).toMatchObject({ code: "data_loss", reason: "object_damaged" });
});

it.each([
  ["store", "store_too_new", (home: string) => writeFileSync(join(home, "store-format"), "3\n")],
  [
    "database",
    "database_too_new",
    (home: string) => {
      using sqlite = new DatabaseSync(join(home, "node.db"));
      sqlite.exec("PRAGMA user_version = 1000");
    },
  ],
])(
  "a home whose %s a newer version wrote is refused unchanged, with both versions of Sandpiper",
  async (_, reason, upgrade) => {
    const config = parseNodeConfig({ home: new ScratchHome().path });
    const { home } = config;
    (await openStorage(config, options)).database[Symbol.dispose]();
    upgrade(home);
    writeFileSync(join(home, "version"), "9.8.7\n");
    const files = ["store-format", "version", "node.db"];
    const content = () => files.map((name) => hash("sha256", readFileSync(join(home, name))));
    const before = content();
    expect(await rejection(openStorage(config, options))).toMatchObject({
      code: "failed_precondition",
      reason,
      message: expect.stringMatching(/Sandpiper 9\.8\.7 used this home last, and this is Sandpiper \d+\.\d+\.\d+$/),
      hint: expect.stringContaining("newer version"),
    });
    expect(content()).toEqual(before);
  },
);
