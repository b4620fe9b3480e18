import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { writePrivateFile } from "../auth/private-file.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The node's id in the cluster. It stays the same after a restart, so that the node keeps its leases. */
export function openNodeId(home: string): string {
  const path = join(home, "node-id");
  if (!existsSync(path)) writePrivateFile(path, `${randomUUID()}\n`);
  const id = readFileSync(path, "utf8").trim();
  if (UUID.test(id)) return id;
  throw new SandboxError("node_id_corrupt", {
    message: `the node's id in ${path} is not a UUID; the file was not changed`,
    details: { path },
  });
}
