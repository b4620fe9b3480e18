import { describe, expect, it } from "vitest";
import { WriteLedger } from "./write-ledger.ts";

const write = (atMs: number) => ({ beganAtMs: atMs - 1, acknowledgedAtMs: atMs });
const rollback = (createdAtMs: number, atMs: number) => ({
  createdAt: new Date(createdAtMs).toISOString(),
  at: new Date(atMs).toISOString(),
});

describe("a ledger of writes", () => {
  it("finds nothing wrong where everything acknowledged is there, with what was not acknowledged", () => {
    const ledger = new WriteLedger();
    ledger.acknowledge(1, write(1000));
    expect(ledger.check([1, 2])).toEqual([]);
  });

  it("names a write that is lost without a word", () => {
    const ledger = new WriteLedger();
    ledger.acknowledge(1, write(1000));
    expect(ledger.check([])).toEqual([expect.stringContaining("line 1 was acknowledged")]);
  });

  it("excuses what a reported rollback took, and nothing from before its checkpoint or after it", () => {
    const ledger = new WriteLedger();
    for (const [line, atMs] of [1000, 2000, 4000].entries()) ledger.acknowledge(line, write(atMs));
    ledger.reported(rollback(1500, 3000));
    expect(ledger.check([])).toEqual([expect.stringContaining("line 0"), expect.stringContaining("line 2")]);
    expect(ledger.setBack).toBe(1);
  });

  it("names a line that is there twice", () => {
    expect(new WriteLedger().check([1, 2, 1])).toEqual(["line 1 is there twice"]);
  });
});
