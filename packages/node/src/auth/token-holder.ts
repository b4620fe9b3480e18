import type { SandboxId } from "@sandpiper/protocol";
import type { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import type { Principal } from "./principal.ts";

/** A caller that may use one sandbox. Its key and tenant are unknown until the sandbox's record arrives at this node. */
export function tokenHolder(sandboxId: SandboxId, records: Pick<SqliteSandboxRecords, "get">): Principal {
  return {
    kind: "sandbox",
    sandboxId,
    get keyId() {
      return records.get(sandboxId)?.keyId ?? "";
    },
    get tenant() {
      return records.get(sandboxId)?.tenant ?? "";
    },
  };
}
