import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { openKeyring } from "../auth/node-secret.ts";
import { ClusterSecret } from "../cluster/cluster-secret.ts";
import { joinCluster } from "../cluster/join-cluster.ts";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { NodeReconciler } from "../reconcile/node-reconciler.ts";
import { SecretService } from "../secrets/secret-service.ts";
import { openHome } from "../start/storage.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { openStore } from "../store/open-store.ts";
import { SealedStates } from "../store/sealed-states.ts";
import { mockNode } from "../testing/mock-node.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { createBackup } from "./create-backup.ts";
import { restoreBackup } from "./restore-backup.ts";
import { verifyBackup } from "./verify-backup.ts";

/** A running node with a saved sandbox, and its backup. */
async function setUp({ includesSecret = false } = {}) {
  const node = mockNode({ provider: new MockProvider() });
  const { id } = await node.create({ name: "saved", env: { PASSWORD: "hunter2" } });
  await node.open(id).exec({ command: "echo saved > file" });
  await node.checkpoints.create(node.owner, id, {});
  const scratch = new ScratchHome().path;
  const place = join(scratch, "backup");
  const index = await createBackup(parseNodeConfig({ home: node.home }), { place, includesSecret });
  const secretFile = join(node.home, "secret");
  const target = parseNodeConfig({ home: join(scratch, "new") });
  return { node, id, scratch, place, index, secretFile, target };
}

const filesIn = (directory: string) =>
  globSync(`${directory}/**/*`, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe("a backup of a home", () => {
  it("contains neither the secret nor anything readable, unless it is asked to include the secret", async () => {
    const { node, place, scratch, secretFile, target } = await setUp();
    const all = Buffer.concat(filesIn(place).map((path) => readFileSync(path)));
    for (const text of ["hunter2", "SQLite format", "saved", "mine"]) expect(all.includes(text), text).toBe(false);
    expect(all.includes(readFileSync(secretFile))).toBe(false);
    expect(await rejection(verifyBackup(target, { place }))).toMatchObject({ reason: "backup_secret_missing" });
    const withSecret = { place: join(scratch, "with-secret"), includesSecret: true };
    await createBackup(parseNodeConfig({ home: node.home }), withSecret);
    await restoreBackup(target, withSecret);
    expect(readFileSync(join(target.home, "secret"))).toEqual(readFileSync(secretFile));
  });

  it("contains the secrets of tenants, encrypted", async () => {
    const { node, scratch, target } = await setUp();
    const value = "sk-real-0123456789";
    await node.secrets.create("mine", { name: "openai", value, hosts: ["api.openai.com"] });
    const place = join(scratch, "secrets");
    await createBackup(parseNodeConfig({ home: node.home }), { place, includesSecret: true });
    expect(Buffer.concat(filesIn(place).map((path) => readFileSync(path))).includes(value)).toBe(false);
    await restoreBackup(target, { place });
    const store = new SealedStates(new DirectoryStore(join(target.home, "store")), openKeyring(target.home));
    const restored = new SecretService({ store, isShared: false, clock: systemClock });
    expect(await restored.of("mine").read()).toMatchObject([{ name: "openai", value }]);
  });

  it("leaves nothing behind in the home of the node", async () => {
    const { node } = await setUp();
    expect(filesIn(join(node.home, "checkpoints"))).toEqual([]);
  });

  it("is not written over anything", async () => {
    const { node, place, scratch } = await setUp();
    const config = parseNodeConfig({ home: node.home });
    const before = filesIn(place);
    const again = rejection(createBackup(config, { place, includesSecret: false }));
    expect(await again).toMatchObject({ code: "already_exists", reason: "backup_target_not_empty" });
    expect(filesIn(place)).toEqual(before);
    mkdirSync(join(scratch, "photos"));
    writeFileSync(join(scratch, "photos", "holiday.jpg"), "x");
    const photos = rejection(createBackup(config, { place: join(scratch, "photos"), includesSecret: false }));
    expect(await photos).toMatchObject({ reason: "backup_target_not_empty" });
    expect(readdirSync(join(scratch, "photos"))).toEqual(["holiday.jpg"]);
  });

  it("that is incomplete, damaged or read with another secret is refused, and the home stays without a node", async () => {
    const { place, secretFile, target, scratch } = await setUp();
    const attempt = async () => {
      const verified = await rejection(verifyBackup(target, { place, secretFile }));
      const restored = await rejection(restoreBackup(target, { place, secretFile }));
      expect(restored.reason).toBe(verified.reason);
      expect(existsSync(join(target.home, "node.db"))).toBe(false);
      rmSync(target.home, { recursive: true, force: true });
      return verified.reason;
    };
    const wrong = join(scratch, "wrong");
    writeFileSync(wrong, Buffer.alloc(32));
    expect(await rejection(restoreBackup(target, { place, secretFile: wrong }))).toMatchObject({
      reason: "backup_secret_wrong",
    });
    const absent = rejection(restoreBackup(target, { place, secretFile: join(scratch, "absent") }));
    expect(await absent).toMatchObject({ code: "not_found" });
    for (const path of filesIn(place).filter((each) => !each.includes("current."))) {
      const bytes = readFileSync(path);
      truncateSync(path, bytes.length - 1);
      expect(await attempt(), `${path} is truncated`).toBe("backup_damaged");
      writeFileSync(path, Buffer.from(bytes).fill(0, bytes.length >> 1, (bytes.length >> 1) + 8));
      expect(await attempt(), `${path} is changed`).toBe("backup_damaged");
      writeFileSync(path, bytes);
    }
    rmSync(join(place, "backup.json%"), { recursive: true });
    expect(await attempt()).toBe("backup_not_found");
  });

  it("is restored neither into the home of a node, nor into a store", async () => {
    const { node, place, secretFile, scratch } = await setUp();
    const home = parseNodeConfig({ home: node.home });
    expect(await rejection(restoreBackup(home, { place }))).toMatchObject({ reason: "home_in_use" });
    node.database[Symbol.dispose]();
    expect(await rejection(restoreBackup(home, { place }))).toMatchObject({ reason: "restore_target_not_empty" });
    const store = parseNodeConfig({ home: join(scratch, "new"), store: `file://${scratch}/store` });
    const mixed = rejection(restoreBackup(store, { place, secretFile }));
    expect(await mixed).toMatchObject({ reason: "backup_kind_mismatch" });
  });

  it("of which a restore was interrupted can be restored again; until then no node starts there", async () => {
    const { place, secretFile, target, id } = await setUp();
    const [chunk = ""] = filesIn(join(place, "chunks"));
    const bytes = readFileSync(chunk);
    rmSync(chunk);
    await rejection(restoreBackup(target, { place, secretFile }));
    expect(await rejection(Promise.try(() => openHome(target)))).toMatchObject({ reason: "restore_unfinished" });
    writeFileSync(chunk, bytes);
    await restoreBackup(target, { place, secretFile });
    using database = openHome(target);
    expect(database.prepare("SELECT name FROM sandboxes WHERE id = ?").get(id)).toMatchObject({ name: "saved" });
  });

  it("has the checkpoint of every sandbox that its database calls paused, whenever it is taken", async () => {
    const { node, scratch, secretFile } = await setUp();
    const { owner, checkpoints, sandboxes } = node;
    let isEnding = false;
    const churn = async () => {
      while (!isEnding) {
        const { id } = await node.create();
        await checkpoints.pause(owner, id);
        await checkpoints.resume(owner, id);
        await checkpoints.pause(owner, id);
        await sandboxes.remove(owner, id);
      }
    };
    const churning = Promise.all([churn(), churn(), churn()]);
    const names = ["one", "two", "three", "four", "five"];
    for (const name of names) {
      await createBackup(parseNodeConfig({ home: node.home }), { place: join(scratch, name), includesSecret: false });
    }
    isEnding = true;
    await churning;
    for (const name of names) {
      const restored = parseNodeConfig({ home: join(scratch, `restored-${name}`) });
      const { sandboxes: saved } = await restoreBackup(restored, { place: join(scratch, name), secretFile });
      using database = openHome(restored);
      const atRest = database.prepare("SELECT id FROM sandboxes WHERE state IN ('paused', 'stopped')").all();
      const missing = atRest.filter((row) => !saved.some(({ id }) => id === row["id"]));
      expect(missing, name).toEqual([]);
    }
  });

  it("of a sandbox at rest whose checkpoints are damaged reports it, and lets the next node mark it as failed", async () => {
    const { node, id, scratch, secretFile } = await setUp();
    await node.checkpoints.pause(node.owner, id);
    for (const path of filesIn(join(node.home, "store", "chunks"))) truncateSync(path, 1);
    const place = join(scratch, "damaged");
    const { leftOut } = await createBackup(parseNodeConfig({ home: node.home }), { place, includesSecret: false });
    expect(leftOut).toMatchObject([{ id, name: "saved", why: "its checkpoints are damaged" }]);
    const restored = join(scratch, "new");
    await restoreBackup(parseNodeConfig({ home: restored }), { place, secretFile });
    const next = mockNode({ provider: new MockProvider(), home: restored });
    await new NodeReconciler(next).reconcile();
    expect(next.registry.record(id)).toMatchObject({ state: "failed", failure: { reason: "instance_lost" } });
  });

  it("that fails deletes what it wrote, so that the next one can use the same place", async () => {
    const { node, scratch } = await setUp();
    const config = parseNodeConfig({ home: node.home });
    const options = { place: join(scratch, "again"), includesSecret: false };
    const onBytes = () => {
      throw new Error("interrupted");
    };
    await rejection(createBackup(config, { ...options, onBytes }));
    expect(readdirSync(options.place)).toEqual([]);
    expect((await createBackup(config, options)).sandboxes).toHaveLength(1);
  });

  it("is not used as a store by a node that is started on it", async () => {
    const { place, scratch } = await setUp();
    const before = filesIn(place);
    const secret = new ClusterSecret({ home: scratch, configured: "s".repeat(32) });
    const joined = rejection(joinCluster({ store: openStore(`file://${place}`), secret, clock: systemClock }));
    expect(await joined).toMatchObject({ reason: "store_is_backup" });
    expect(filesIn(place)).toEqual(before);
  });
});
