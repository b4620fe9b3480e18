import { createHash, randomBytes } from "node:crypto";
import { createSandbox } from "@sandpiper/node";
import type { Benchmark } from "../benchmark.ts";
import { atMost, resultOf } from "../report.ts";
import { timed } from "../timed-run.ts";

const SIZE_BYTES = 5 * 2 ** 30;
const CHUNK_BYTES = 1024 * 1024;
const CHUNKS = 16;
const MEMORY_MIB = 256;
const SUBJECT = "sandpiper-gvisor";
/** Allowed growth of the host program, including garbage not yet collected. */
const HOST_GROWTH_MB = 50;

export const benchmark: Benchmark = {
  title: `Stream 5 GiB to a file in a sandbox with ${MEMORY_MIB} MiB of memory, and back, with a hash`,
  method:
    "One run; both sides hash the stream. The sandbox's cgroup enforces its memory limit, so a sandbox that needed more would be killed.",
  order: 80,
  timeLimitMs: 300_000,
  async run(context) {
    const home = await context.workspace.makeDir("file-5gib");
    await using sandbox = await createSandbox({
      home,
      memoryMib: MEMORY_MIB,
      diskMib: 6 * 1024,
      signal: context.signal,
    });
    // Created before, because the benchmark's own garbage would count as growth of the host program.
    const chunks = Array.from({ length: CHUNKS }, () => randomBytes(CHUNK_BYTES));
    const watch = watchMemory();
    const sent = createHash("sha256");
    const writeMbPerSecond = await throughput(() =>
      sandbox.writeFile("/tmp/big", content(chunks, sent, context.signal)),
    );
    context.progress("reading it back");
    const received = createHash("sha256");
    const options = { signal: context.signal, lendsMemory: true };
    const readMbPerSecond = await throughput(async () => {
      for await (const chunk of sandbox.files.read("/tmp/big", options)) received.update(chunk);
    });
    const grownMb = watch.stop();
    const isSame = sent.digest("hex") === received.digest("hex");
    const result = (name: string, value: number) => resultOf(`file-5gib ${name}`, SUBJECT, [value], "MB/s");
    return {
      results: [result("write", writeMbPerSecond), result("read", readMbPerSecond)],
      targets: [
        atMost("file-5gib: files that differ", isSame ? 0 : 1, 0),
        atMost("file-5gib: memory growth of the host program in MB", grownMb, HOST_GROWTH_MB),
      ],
      problems: [],
    };
  },
};

/** Chunks in random order, so that a lost, repeated or misplaced chunk changes the hash. */
async function* content(
  chunks: readonly Uint8Array[],
  hash: ReturnType<typeof createHash>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (const number of randomBytes(SIZE_BYTES / CHUNK_BYTES)) {
    signal.throwIfAborted();
    const chunk = chunks[number % chunks.length] as Uint8Array;
    hash.update(chunk);
    yield chunk;
  }
}

async function throughput(transfer: () => Promise<void>): Promise<number> {
  return SIZE_BYTES / 1e6 / ((await timed(transfer)) / 1000);
}

function watchMemory(): { stop(): number } {
  const before = process.memoryUsage.rss();
  let highest = before;
  const timer = setInterval(() => {
    highest = Math.max(highest, process.memoryUsage.rss());
  }, 50);
  return {
    stop() {
      clearInterval(timer);
      return (highest - before) / 1e6;
    },
  };
}
