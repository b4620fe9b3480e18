import type { Sandbox } from "@sandpiper/sdk";
import { NodeProcess } from "../../test/node/node-process.ts";
import type { Benchmark } from "../benchmark.ts";
import { atMost, type Result, resultOf, type Target } from "../report.ts";

const SUBJECT = "sandpiper-node";
const FILE_PATH = "/tmp/changed";
const SIZES_MB = [0, 20];
const CHANGED_MB = [0, 1, 10, 50];
const SHARE = 0.05;

export const benchmark: Benchmark = {
  title: "What a checkpoint adds to the store",
  method: `A node with a directory as its store. The figure is the megabytes that a checkpoint uploads, as the node reports them, including the manifest: for a new sandbox, empty and with ${SIZES_MB.at(-1)} MB of random files; again without changes; then after the given megabytes of new random files.`,
  order: 116,
  timeLimitMs: 120_000,
  async run(context) {
    await using stack = new AsyncDisposableStack();
    const home = await context.workspace.makeDir("checkpoint-store");
    const { client } = stack.use(await NodeProcess.start({ home, port: 0, logLevel: "warn" }));
    const results: Result[] = [];
    const result = (name: string, uploaded: number) => resultOf(name, SUBJECT, [uploaded], "MB");
    const targets: Target[] = [];
    for (const mb of SIZES_MB) {
      context.signal.throwIfAborted();
      context.progress(`${mb} MB, twice`);
      await using sandbox = await client.sandboxes.create();
      const label = mb === 0 ? "bare" : `with ${mb} MB of files`;
      if (mb > 0) await change(sandbox, mb);
      const first = await uploadedMb(sandbox);
      const second = await uploadedMb(sandbox);
      results.push(
        result(`checkpoint-store, first, ${label}`, first),
        result(`checkpoint-store, again, ${label}`, second),
      );
      targets.push(
        atMost(
          `checkpoint-store: share of an unchanged sandbox that is uploaded again, ${label}`,
          second / first,
          SHARE,
        ),
      );
    }
    await using sandbox = await client.sandboxes.create();
    await uploadedMb(sandbox);
    for (const mb of CHANGED_MB) {
      context.signal.throwIfAborted();
      context.progress(`${mb} MB changed`);
      await change(sandbox, mb);
      results.push(result(`checkpoint-store, ${mb} MB changed`, await uploadedMb(sandbox)));
    }
    return { results, targets, problems: [] };
  },
};

async function change(sandbox: Sandbox, mb: number): Promise<void> {
  const { exitCode } = await sandbox.exec(`head -c ${mb * 1_000_000} /dev/urandom > ${FILE_PATH}`);
  if (exitCode !== 0) throw new Error(`failed to write ${mb} MB in sandbox ${sandbox.id}`);
}

async function uploadedMb(sandbox: Sandbox): Promise<number> {
  return (await sandbox.checkpoint()).uploadedBytes / 1_000_000;
}
