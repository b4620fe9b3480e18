import { chmod, type FileHandle, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { QmpClient } from "../qmp/qmp-client.ts";

/** QEMU limits its bandwidth by default, for networks. */
const UNLIMITED_BYTES_PER_SECOND = 2 ** 40;
const SAVE_SOCKET = "save.sock";
const BUFFER_BYTES = 2 ** 20;

/** Must run before the first migration of a machine, in either direction. */
export async function prepareMigration(
  monitor: QmpClient,
  { ignoresShared }: { readonly ignoresShared: boolean },
): Promise<void> {
  await Promise.all([
    monitor.execute("migrate-set-capabilities", {
      capabilities: [
        { capability: "events", state: true },
        { capability: "x-ignore-shared", state: ignoresShared },
      ],
    }),
    monitor.execute("migrate-set-parameters", { "max-bandwidth": UNLIMITED_BYTES_PER_SECOND }),
  ]);
}

/** Resumes a machine that waits for its state; QEMU reads it from descriptor 3. */
export async function loadState(monitor: QmpClient): Promise<void> {
  await migrated(monitor, () => monitor.execute("migrate-incoming", { uri: "fd:3" }));
  await monitor.execute("cont", {});
}

/** Saves the state of a paused machine through a socket in its directory, which is all that QEMU can reach. */
export async function saveState(monitor: QmpClient, directory: string, file: FileHandle): Promise<void> {
  const socketPath = join(directory, SAVE_SOCKET);
  const { promise: written, resolve, reject } = Promise.withResolvers<void>();
  written.catch(() => {});
  const server = createServer({ highWaterMark: BUFFER_BYTES }, (socket) => {
    file.writeFile(socket).then(resolve, reject);
  });
  try {
    await rm(socketPath, { force: true });
    await new Promise<void>((listening) => server.listen(socketPath, listening));
    // Only users who may enter the directory can reach the socket.
    await chmod(socketPath, 0o666);
    const failed = written.then(() => new Promise<never>(() => {}));
    await Promise.race([migrated(monitor, () => monitor.execute("migrate", { uri: `unix:${SAVE_SOCKET}` })), failed]);
    await written;
  } catch (error) {
    await monitor.execute("migrate_cancel", {}).catch(() => {});
    throw error;
  } finally {
    server.close();
    await rm(socketPath, { force: true });
  }
}

/** QEMU reports the start in its answer and the end in an event. */
async function migrated(monitor: QmpClient, begin: () => Promise<unknown>): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  const stop = monitor.onEvent(({ event, data }) => {
    const status = String(data["status"]);
    if (event === "MIGRATION" && ["completed", "failed", "cancelled"].includes(status)) resolve(status);
  });
  const gone = monitor.closed.then(() => "gone");
  try {
    await begin();
    const status = await Promise.race([ended, gone]);
    if (status === "completed") return;
    const { "error-desc": why } = monitor.isClosed ? {} : await monitor.execute("query-migrate", {});
    throw new SandboxError("migration_failed", {
      message: `QEMU could not save or load the state of a machine: it ${status === "gone" ? "ended" : status}${why ? `: ${why}` : ""}`,
      hint: "if it happens again, report this as a bug",
    });
  } finally {
    stop();
  }
}
