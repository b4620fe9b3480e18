import { systemClock } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { openStorage } from "./storage.ts";

it("the store of a standalone node is encrypted at its first start, and clear text is refused afterwards", async () => {
  const config = parseNodeConfig({ home: new ScratchHome().path });
  const describe = () => ({ isDraining: false, sandboxes: 0 });
  const open = async () => {
    const storage = await openStorage(config, { clock: systemClock, version: "1", describe, onError: () => {} });
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
