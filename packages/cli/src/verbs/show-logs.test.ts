import { describe, expect, it } from "vitest";
import { type LogChunk, until } from "./show-logs.ts";

const never = new Promise<never>(() => {});

async function* output(...texts: string[]): AsyncGenerator<LogChunk> {
  let offset = 0;
  for (const text of texts) {
    const bytes = Buffer.from(text);
    yield { source: "stdout", bytes, offset };
    offset += bytes.length;
  }
  await never;
}

async function textUntil(endOffset: number, ...texts: string[]): Promise<string> {
  const chunks = await Array.fromAsync(until({ startOffset: 0, endOffset }, output(...texts)));
  return chunks.map(({ bytes }) => Buffer.from(bytes).toString()).join("");
}

describe("logs without --follow", () => {
  it("end with what was written when they were asked for, though the process runs on", async () => {
    expect(await textUntil(4, "ab", "cd", "ef")).toBe("abcd");
    expect(await textUntil(3, "ab", "cd")).toBe("abc");
  });

  it("of a silent process are empty at once", async () => {
    expect(await textUntil(0)).toBe("");
    expect(await Array.fromAsync(until({ startOffset: 9, endOffset: 9 }, output()))).toEqual([]);
  });
});
