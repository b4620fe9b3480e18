import { describe, expect, it } from "vitest";
import { type LogChunk, until } from "./logs.ts";

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
  it("end with the output so far, even if the process keeps writing", async () => {
    expect(await textUntil(4, "ab", "cd", "ef")).toBe("abcd");
    expect(await textUntil(3, "ab", "cd")).toBe("abc");
  });

  it("of a process without output are empty at once", async () => {
    expect(await textUntil(0)).toBe("");
    expect(await Array.fromAsync(until({ startOffset: 9, endOffset: 9 }, output()))).toEqual([]);
  });
});
