import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { writePrivateFile } from "../auth/private-file.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A node's name among the others: made once, and the same after every restart, so that its leases are still its own. */
export function openNodeId(home: string, randomUuid: () => string = randomUUID): string {
  const path = join(home, "node-id");
  if (!existsSync(path)) writePrivateFile(path, `${randomUuid()}\n`);
  const id = readFileSync(path, "utf8").trim();
  if (UUID.test(id)) return id;
  throw new SandboxError("data_loss", {
    reason: "node_id_corrupt",
    message: `the node's id ${path} is no UUID; it was left as it is`,
    hint: "restore it from a backup, or remove it: the node is then a new one, and its sandboxes come back when their leases have ended",
    details: { path },
  });
}
