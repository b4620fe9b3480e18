import { MemoryStore } from "@sandpiper/core/testing";
import { expect, it } from "vitest";
import { ObjectChunks } from "./object-chunks.ts";

it("looks up only some of many missing chunks, and all of them again once it finds one", async () => {
  let heads = 0;
  const store = new MemoryStore({
    fault: ({ operation }) => {
      if (operation === "head") heads += 1;
      return undefined;
    },
  });
  const chunks = new ObjectChunks(store);
  const there = hashOf("f");
  await chunks.openSession().put(there, [Uint8Array.of(1)]);

  const session = chunks.openSession();
  for (let n = 0; n < 116; n += 1) expect(await session.find(hashOf(`${n % 10}`))).toBeUndefined();
  expect(heads).toBe(16 + 12);
  heads = 0;
  // Seven of these are assumed to be missing and would be uploaded again.
  while ((await session.find(there)) === undefined);
  expect(heads).toBe(1);
  for (let n = 0; n < 10; n += 1) expect(await session.find(there)).toMatchObject({ hash: there });
  expect(heads).toBe(11);
});

function hashOf(digit: string): string {
  return digit.repeat(64);
}
