import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { checkIoWeights } from "./check-io-weights.ts";

it.each([
  ["mq-deadline kyber [bfq] none\n", "bfq: the node comes before its sandboxes"],
  ["[mq-deadline] kyber bfq none\n", "mq-deadline, without weights"],
])("reads from %s whether the disk has weights", (text, expected) => {
  const home = mkdtempSync(join(tmpdir(), "sandpiper-io-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const { dev } = statSync(home);
  const queue = join(home, `${dev >> 8}:${dev & 0xff}`, "queue");
  mkdirSync(queue, { recursive: true });
  writeFileSync(join(queue, "scheduler"), text);
  expect(checkIoWeights(home, home).detail).toContain(expected);
});

it("names no scheduler of a home without a disk", () => {
  expect(checkIoWeights(tmpdir(), "/nowhere").detail).toMatch(/^unknown, without weights/);
});
