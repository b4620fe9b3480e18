import { createHmac, hkdfSync } from "node:crypto";
import { FakeClock, MemoryStore, rejection } from "@sandpiper/core/testing";
import { expect, it } from "vitest";
import { SignedStore } from "../store/signed-store.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { ClusterSecret } from "./cluster-secret.ts";
import { joinCluster } from "./join-cluster.ts";
import { signControl } from "./sign-control.ts";

const [OLD, NEW] = ["the earlier secret", "the next secret!"];
const clock = new FakeClock();
const bytes = (content: object) => Buffer.from(JSON.stringify(content));
const join = (store: MemoryStore, configured: string, accepted: string[] = []) =>
  joinCluster({ store, clock, secret: new ClusterSecret({ home: new ScratchHome().path, configured, accepted }) });

it("signs the objects of a store without signatures, for an operator with the cluster's secret only", async () => {
  const store = new MemoryStore();
  const id = crypto.randomUUID();
  const key = new Uint8Array(hkdfSync("sha256", OLD, id, "sandpiper check", 32));
  const check = createHmac("sha256", key).update(id).digest("base64url");
  await store.put("cluster.json", bytes({ id, createdAt: new Date(0).toISOString(), check }));
  await store.put("keys.json", bytes({ keys: [] }));
  const migrate = (secret: string) => signControl({ store, secrets: [secret], acceptsUnsigned: true });
  expect(await rejection(migrate(NEW))).toMatchObject({ reason: "wrong_cluster_secret" });
  expect(await migrate(OLD)).toMatchObject({ signed: 2 });
  const { keyring } = await join(store, OLD);
  expect(await new SignedStore({ store, keyring, clock }).get("keys.json")).toBeDefined();
});

it("signs all objects again with the next secret, so that the earlier one can be dropped, and stops at a forged one", async () => {
  const store = new MemoryStore();
  const { keyring } = await join(store, OLD);
  await new SignedStore({ store, keyring, clock }).put("locks/a.lock", bytes({ epoch: 1 }));
  expect(await rejection(join(store, NEW))).toMatchObject({ reason: "wrong_cluster_secret" });
  const rotate = () => signControl({ store, secrets: [NEW, OLD], acceptsUnsigned: false });
  expect(await rotate()).toMatchObject({ signed: 2 });
  expect(await rotate()).toMatchObject({ signed: 0 });
  const joined = await join(store, NEW);
  expect(await new SignedStore({ store, keyring: joined.keyring, clock }).get("locks/a.lock")).toBeDefined();
  await store.put("locks/b.lock", bytes({ epoch: 1 }));
  expect(await rejection(rotate())).toMatchObject({ reason: "object_forged", details: { key: "locks/b.lock" } });
});
