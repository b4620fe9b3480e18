import { rejection } from "@sandpiper/core/testing";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { StoreNodes } from "../handoff/testing/store-nodes.ts";
import { openStore } from "../store/open-store.ts";
import { type S3Server, startS3Server } from "../store/testing/s3-server.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { createBackup } from "./create-backup.ts";
import { restoreBackup } from "./restore-backup.ts";
import { verifyBackup } from "./verify-backup.ts";

/** The first run builds the server. */
const BUILD_TIMEOUT_MS = 600_000;

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
  await server.createBucket("sandboxes");
  await server.createBucket("backups");
  for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value);
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  vi.unstubAllEnvs();
  await server[Symbol.asyncDispose]();
});

it("backs a store in an S3 bucket up to another bucket, and restores it after an interruption", async () => {
  await using nodes = new StoreNodes();
  const home = new ScratchHome().path;
  const configOf = (store: string) => parseNodeConfig({ home, store, clusterSecret: "s".repeat(32) });
  const source = "s3://sandboxes/old";
  const place = "s3://backups/one";
  const a = await nodes.start("a", new MockProvider(), { store: source });
  const { id } = await a.create({ name: "kept" });
  await a.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "echo saved > file" } });
  await a.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: {} });
  await createBackup(configOf(source), { place, includesSecret: false });
  await a.crash();
  expect(await verifyBackup(configOf(source), { place })).toMatchObject({ sandboxes: [{ id }] });
  const again = rejection(createBackup(configOf(source), { place, includesSecret: false }));
  expect(await again).toMatchObject({ reason: "backup_target_not_empty" });

  const target = "s3://sandboxes/new";
  const backup = openStore(place);
  const [state] = await Array.fromAsync(backup.list("objects/states/"));
  const bytes = (await backup.get(state?.key ?? ""))?.bytes ?? Buffer.alloc(0);
  await backup.delete(state?.key ?? "");
  expect(await rejection(restoreBackup(configOf(target), { place }))).toMatchObject({ reason: "backup_damaged" });
  expect(await rejection(nodes.start("b", new MockProvider(), { store: target }))).toMatchObject({
    reason: "restore_unfinished",
  });
  await backup.put(state?.key ?? "", bytes);
  await restoreBackup(configOf(target), { place });
  expect(await rejection(restoreBackup(configOf(target), { place }))).toMatchObject({
    reason: "restore_target_not_empty",
  });
  const c = await nodes.start("c", new MockProvider(), { store: target });
  const run = await c.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "cat file" } });
  expect(await run.json()).toMatchObject({ stdout: "saved\n" });
});
