import { type Access, createSandboxId, type KeyScope, SandboxError } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import { requireAccess } from "./access.ts";
import type { Principal } from "./principal.ts";

const id = createSandboxId();
const own = { id, tenant: "a" };
const foreign = { id: createSandboxId(), tenant: "b" };
const token: Principal = { kind: "sandbox", keyId: "0a1b2c3d", sandboxId: id, tenant: "a" };

function key(...scopes: KeyScope[]): Principal {
  return { kind: "key", keyId: "0a1b2c3d", tenant: "a", scopes };
}

function outcome(...[principal, access, options]: Parameters<typeof requireAccess>): string {
  try {
    requireAccess(principal, access, options);
    return "allowed";
  } catch (thrown) {
    return SandboxError.from(thrown).code;
  }
}

const allowed = ["allowed", "allowed"];
const reading = ["allowed", "permission_denied"];
const denied = ["permission_denied", "permission_denied"];

/** The outcomes of reading and changing. */
const table: [string, Principal, Record<Access, string[]>][] = [
  [
    "an admin",
    key("admin"),
    { anyone: allowed, sandbox: allowed, read: allowed, sandboxes: allowed, admin: allowed, metrics: allowed },
  ],
  [
    "a key for sandboxes",
    key("sandboxes"),
    { anyone: allowed, sandbox: allowed, read: allowed, sandboxes: allowed, admin: denied, metrics: denied },
  ],
  [
    "a read-only key",
    key("read"),
    { anyone: allowed, sandbox: reading, read: reading, sandboxes: reading, admin: denied, metrics: denied },
  ],
  [
    "a key for metrics",
    key("metrics"),
    { anyone: allowed, sandbox: denied, read: denied, sandboxes: denied, admin: denied, metrics: allowed },
  ],
  [
    "a sandbox's token",
    token,
    { anyone: allowed, sandbox: allowed, read: denied, sandboxes: denied, admin: denied, metrics: denied },
  ],
];

describe.each(table)("%s", (_, principal, expected) => {
  it.each(Object.entries(expected) as [Access, string[]][])("has its access to %s routes", (access, outcomes) => {
    for (const sandbox of [undefined, own]) {
      expect([true, false].map((readOnly) => outcome(principal, access, { readOnly, sandbox }))).toEqual(outcomes);
    }
  });
});

describe("another tenant's sandbox", () => {
  it.each([
    ["another tenant's key", key("sandboxes")],
    ["another tenant's read-only key", key("read")],
    ["another sandbox's token", token],
  ])("does not exist for %s", (_, principal) => {
    for (const readOnly of [true, false]) {
      expect(outcome(principal, "sandbox", { readOnly, sandbox: foreign })).toBe("not_found");
    }
  });

  it("does not exist for another sandbox's token, even within the same tenant", () => {
    const sandbox = { id: createSandboxId(), tenant: "a" };
    expect(outcome(token, "sandbox", { readOnly: true, sandbox })).toBe("not_found");
  });

  it("is refused with the same error as an unknown id", () => {
    expect(() => requireAccess(key("sandboxes"), "sandbox", { readOnly: true, sandbox: foreign })).toThrow(
      noSuchSandbox(foreign.id),
    );
  });

  it("is accessible to admins", () => {
    expect(outcome(key("admin"), "sandbox", { readOnly: false, sandbox: foreign })).toBe("allowed");
  });
});

describe("a key with several scopes", () => {
  it("may do what any of its scopes allows", () => {
    expect(outcome(key("read", "sandboxes"), "sandbox", { readOnly: false, sandbox: own })).toBe("allowed");
  });

  it("may do nothing if the list is empty", () => {
    expect(outcome(key(), "read", { readOnly: true })).toBe("permission_denied");
  });
});
