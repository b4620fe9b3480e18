import { FakeClock } from "@sandpiper/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { AuditTrail } from "./audit-trail.ts";
import { testChain } from "./testing/test-chain.ts";

let clock: FakeClock;
let trail: AuditTrail;
beforeEach(() => {
  clock = new FakeClock();
  trail = new AuditTrail(new ScratchHome().database, { chain: testChain(), clock });
});

const note = { operation: "startProcess", sandboxId: null, status: 401, requestId: "r" };
const entries = () => trail.list({ after: 0, limit: 1000 });
const key = { kind: "key", keyId: "k", tenant: "one", scopes: ["sandboxes"] } as never;

describe("the audit trail", () => {
  it("records ten anonymous refusals a minute, and then one summary of the others with their addresses", async () => {
    for (let i = 0; i < 50; i += 1) trail.note({ ...note, address: `10.0.0.${i % 4}` });
    expect(entries()).toHaveLength(10);
    await clock.advance(60_000);
    expect(entries()).toHaveLength(11);
    expect(entries().at(-1)).toMatchObject({
      actor: null,
      tenant: null,
      operation: "refusalsNotRecorded",
      notRecorded: { requests: 40, addresses: 4 },
    });
    trail.note(note);
    await clock.advance(60_000);
    expect(entries()).toHaveLength(12);
  });

  it("has a budget for each tenant's refusals, and none for what was done", () => {
    for (let i = 0; i < 20; i += 1) trail.note(note);
    for (let i = 0; i < 150; i += 1) trail.note({ ...note, status: 403, principal: key });
    for (let i = 0; i < 150; i += 1) trail.note({ ...note, status: 201, principal: key });
    trail[Symbol.dispose]();
    const summaries = entries().filter(({ notRecorded }) => notRecorded !== undefined);
    expect(entries()).toHaveLength(10 + 100 + 150 + 2);
    expect(summaries.map(({ tenant, notRecorded }) => [tenant, notRecorded?.requests])).toEqual([
      [null, 10],
      ["one", 50],
    ]);
  });

  it("passes entries on after they were written", () => {
    const written: number[] = [];
    const subscription = trail.subscribe((found) => written.push(...found.map(({ id }) => id)));
    trail.note({ ...note, status: 200 });
    expect(written).toEqual([]);
    entries();
    expect(written).toEqual([1]);
    subscription[Symbol.dispose]();
    trail.note({ ...note, status: 200 });
    entries();
    expect(written).toEqual([1]);
  });
});
