import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, SandboxError } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { KeyService } from "./key-service.ts";
import { NodeAuthenticator } from "./node-authenticator.ts";
import { openNodeSecrets } from "./node-secret.ts";
import { SandboxTokens } from "./sandbox-tokens.ts";

let home: ScratchHome;
let clock: FakeClock;
let keys: KeyService;
let tokens: SandboxTokens;
let records: SqliteSandboxRecords;
let authenticator: NodeAuthenticator;

beforeEach(() => {
  home = new ScratchHome();
  clock = new FakeClock();
  keys = new KeyService(home.database, { clock });
  tokens = new SandboxTokens(openNodeSecrets(home.path));
  records = new SqliteSandboxRecords(home.database);
  authenticator = new NodeAuthenticator({ keys, tokens, records });
});

describe("authentication", () => {
  it("finds the tenant and scopes of a key", () => {
    const { key, id } = keys.create({ name: "ci", tenant: "a", scopes: ["read"] });
    const principal = { kind: "key", keyId: id, tenant: "a", scopes: ["read"] };
    expect(authenticator.authenticate(key)).toEqual(principal);
  });

  it("finds the sandbox and tenant of a token", () => {
    const record = sandboxRecord({ tenant: "a" });
    records.add(record);
    const principal = { kind: "sandbox", sandboxId: record.id, keyId: record.keyId, tenant: "a" };
    expect(authenticator.authenticate(tokens.tokenOf(record.id))).toEqual(principal);
  });

  it("reports no_credential for a missing one", () => {
    for (const credential of [undefined, ""]) {
      expect(refusal(credential)).toMatchObject({ code: "unauthenticated", reason: "no_credential" });
    }
  });

  it("reports the same error for every kind of invalid credential", async () => {
    const revoked = keys.create({ name: "revoked" });
    keys.revoke(revoked.id);
    const expired = keys.create({ name: "expired", expiresAt: new Date(clock.now().getTime() + 1).toISOString() });
    await clock.advance(1);
    const destroyed = sandboxRecord({ state: "destroyed" });
    records.add(destroyed);
    const wrong = [
      "x",
      "spk_00000000_nothing",
      `spk_00000000_${"A".repeat(43)}`,
      `spk_${revoked.id}_${"A".repeat(43)}`,
      revoked.key,
      expired.key,
      "spt_x",
      tokens.tokenOf(destroyed.id),
      tokens.tokenOf(createSandboxId()),
      tokens.tokenOf(destroyed.id).replace(/.$/, "!"),
    ];
    const answers = wrong
      .map(refusal)
      .map(({ code, reason, message, hint, details }) => ({ code, reason, message, hint, details }));
    expect(answers[0]).toMatchObject({ code: "unauthenticated", reason: "bad_credential", details: {} });
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  });

  it("accepts the token of a failed sandbox, so that its failure can be read", () => {
    const record = sandboxRecord({ state: "failed" });
    records.add(record);
    expect(authenticator.authenticate(tokens.tokenOf(record.id))).toMatchObject({ sandboxId: record.id });
  });

  it("refuses the token of a destroyed sandbox", () => {
    const record = sandboxRecord();
    records.add(record);
    records.change(record.id, { state: "destroyed", endedAt: clock.now() });
    expect(refusal(tokens.tokenOf(record.id))).toMatchObject({ reason: "bad_credential" });
  });
});

describe("authentication in a cluster", () => {
  it("accepts the token of another node's sandbox, and finds its tenant once the sandbox moves here", () => {
    const inCluster = new NodeAuthenticator({ keys, tokens, records, cluster: { learn: async () => {} } });
    const record = sandboxRecord({ tenant: "a" });
    const token = tokens.tokenOf(record.id);
    const principal = inCluster.authenticate(token);
    expect(principal).toEqual({ kind: "sandbox", sandboxId: record.id, keyId: "", tenant: "" });
    records.add(record);
    expect(principal.tenant).toBe("a");
    records.change(record.id, { state: "destroyed", endedAt: clock.now() });
    expect(() => inCluster.authenticate(token)).toThrow(expect.objectContaining({ reason: "bad_credential" }));
    expect(() => inCluster.authenticate(token.replace(/.$/, "!"))).toThrow();
  });
});

function refusal(credential: string | undefined): SandboxError {
  try {
    authenticator.authenticate(credential);
  } catch (thrown) {
    return SandboxError.from(thrown);
  }
  throw new Error(`${credential} was accepted`);
}
