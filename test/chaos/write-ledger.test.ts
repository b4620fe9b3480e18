import { describe, expect, it } from "vitest";
import { WriteLedger } from "./write-ledger.ts";

const write = (atMs: number) => ({ beganAtMs: atMs - 1, acknowledgedAtMs: atMs });
const rollback = (createdAtMs: number, atMs: number) => ({
  createdAt: new Date(createdAtMs).toISOString(),
  at: new Date(atMs).toISOString(),
});

describe("a ledger of writes", () => {
  it("accepts all acknowledged lines, with or without others", () => {
    const ledger = new WriteLedger();
    ledger.acknowledge(1, write(1000));
    expect(ledger.check([1, 2])).toEqual({ lost: [], repeated: [] });
  });

  it("reports an acknowledged write that is lost without a reported rollback", () => {
    const ledger = new WriteLedger();
    ledger.acknowledge(1, write(1000));
    expect(ledger.check([]).lost).toEqual([expect.stringContaining("line 1, acknowledged")]);
  });

  it("excuses a loss only between the checkpoint of a reported rollback and the rollback", () => {
    const ledger = new WriteLedger();
    for (const [line, atMs] of [1000, 2000, 4000].entries()) ledger.acknowledge(line, write(atMs));
    ledger.reported(rollback(1500, 3000));
    expect(ledger.check([]).lost).toEqual([expect.stringContaining("line 0"), expect.stringContaining("line 2")]);
    expect(ledger.setBack).toBe(1);
  });

  it("reports a line that was written twice, once", () => {
    const ledger = new WriteLedger();
    expect(ledger.check([1, 2, 1]).repeated).toEqual(["line 1 was written twice"]);
    expect(ledger.check([1, 2, 1]).repeated).toEqual([]);
  });
});
