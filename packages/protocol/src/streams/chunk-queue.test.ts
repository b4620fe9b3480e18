import { describe, expect, it } from "vitest";
import { ChunkQueue } from "./chunk-queue.ts";
import type { OutputSource, StreamChunk } from "./output-chunk.ts";

function randomChunks(count: number, sizes: readonly number[]): StreamChunk[] {
  const sources: readonly (OutputSource | undefined)[] = ["stdout", "stderr", "pty", undefined];
  let offset = 0;
  return Array.from({ length: count }, (_, index) => {
    const size = sizes[index % sizes.length] ?? 1;
    const dropped = index % 97 === 0 ? 5 : 0;
    const chunk = {
      bytes: new Uint8Array(size).fill(index % 251),
      offset: offset + dropped,
      source: sources[(index * 7) % 4],
      dropped,
    };
    offset = chunk.offset + size;
    return chunk;
  });
}

/** Every byte with its offset, source and dropped count. */
function bytesOf(chunks: readonly StreamChunk[]): string[] {
  return chunks.flatMap(({ bytes, offset, source, dropped }) =>
    [...bytes].map((byte, at) => `${offset + at} ${source} ${byte} ${at === 0 ? dropped : 0}`),
  );
}

function drain(queue: ChunkQueue): StreamChunk[] {
  const taken: StreamChunk[] = [];
  for (let chunk = queue.shift(); chunk !== undefined; chunk = queue.shift()) taken.push(chunk);
  return taken;
}

describe("a queue of chunks", () => {
  it.each([[[1]], [[1, 1500, 3]], [[1024, 1025]]])("returns every byte in order, sizes %j", (sizes) => {
    const chunks = randomChunks(150, sizes);
    const queue = new ChunkQueue();
    for (const chunk of chunks) queue.push(chunk);
    expect(bytesOf(drain(queue)).join() === bytesOf(chunks).join()).toBe(true);
  });

  it("returns every byte in order when reading and writing alternate", () => {
    const chunks = randomChunks(3000, [1, 1, 20]);
    const queue = new ChunkQueue();
    const taken: StreamChunk[] = [];
    for (const [index, chunk] of chunks.entries()) {
      queue.push(chunk);
      if (index % 3 === 2) taken.push(...[queue.shift(), queue.shift()].filter((each) => each !== undefined));
    }
    expect(bytesOf([...taken, ...drain(queue)]).join() === bytesOf(chunks).join()).toBe(true);
  });

  it("joins single bytes of one source, so that they cost bytes and not objects", () => {
    const queue = new ChunkQueue();
    for (let at = 0; at < 100_000; at++) {
      queue.push({ bytes: Uint8Array.of(1), offset: at, source: "stdout", dropped: 0 });
    }
    expect(drain(queue).length).toBeLessThan(70);
  });
});
