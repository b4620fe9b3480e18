import { lockKey, systemClock } from "@sandpiper/core";
import { MemoryStore } from "@sandpiper/core/testing";
import { expect, it } from "vitest";
import { newKey } from "../auth/new-key.ts";
import { documentOf, KEYS_OBJECT } from "../cluster/stored-keys.ts";
import { SignedStore } from "../store/signed-store.ts";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { testKeyring as keyring } from "../testing/test-keyring.ts";
import { restoreControl } from "./restore-control.ts";

it("gives restored sandboxes a lease that no node holds, their names, and their share of quotas", async () => {
  const store = new MemoryStore();
  const { key } = newKey(
    { name: "limited", tenant: "t", quota: { maxSandboxes: 2 } },
    { now: new Date(), isTaken: () => false },
  );
  const record = sandboxRecord({ tenant: "t", keyId: key.id, name: "named" });
  const rival = sandboxRecord({ tenant: "t", keyId: key.id, name: "named" });
  const keys = documentOf({ keys: [key], tenants: new Map() }, { revision: 7 });
  const states = [record, rival].map((each) => ({ record: each, epoch: 5 }));
  await restoreControl({ store, keyring, clock: systemClock, keys, states });

  const control = new SignedStore({ store, keyring, clock: systemClock });
  const read = async (name: string) => JSON.parse(Buffer.from((await control.get(name))?.bytes ?? []).toString());
  expect(await read(lockKey(record.id))).toMatchObject({ owner: null, epoch: 5, waiter: null });
  expect(Object.keys((await read(`quotas/${key.id}.json`)).holdings).sort()).toEqual([record.id, rival.id].sort());
  const [name, ...others] = await Array.fromAsync(control.list("names/"));
  expect([await read(name?.key ?? ""), others]).toMatchObject([{ sandbox: record.id }, []]);
  expect((await read(KEYS_OBJECT)).revision).toBeGreaterThan(1_000_000_000_000);
});
