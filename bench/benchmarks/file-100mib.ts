import { randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Benchmark } from "../benchmark.ts";
import { compare } from "../compare.ts";
import { atLeast, combine, p50Of } from "../report.ts";

const SIZE_BYTES = 100 * 1024 * 1024;
const SUBJECTS = { "sandpiper-gvisor": 1, "raw-runsc": 1, docker: 1, "local-process": 1 };
const ROUNDS = 10;
const WRITE = "file-100mib write";
const READ = "file-100mib read";

export const benchmark: Benchmark = {
  title: "A file of 100 MiB from the host into a sandbox, and back into a file of the host",
  method:
    "File to file, random bytes, compared after each read. docker: `docker cp` both ways. raw-runsc: `cat` through runsc exec.",
  order: 50,
  timeLimitMs: 180_000,
  async run(context) {
    const dir = await context.workspace.makeDir("file-100mib");
    const source = join(dir, "source");
    const content = randomBytes(SIZE_BYTES);
    await writeFile(source, content);
    const written = await compare(context, {
      name: WRITE,
      perRound: SUBJECTS,
      rounds: ROUNDS,
      operation: (subject) => subject.writeFile && (async () => (await subject.writeFile?.(source)) ?? []),
    });
    const copy = join(dir, "copy");
    const read = await compare(context, {
      name: READ,
      perRound: SUBJECTS,
      rounds: ROUNDS,
      operation: (subject) =>
        subject.readFile &&
        (async () => {
          const tookMs = (await subject.readFile?.(copy)) ?? [];
          if (!content.equals(await readFile(copy))) throw new Error("what came back is not what was written");
          await rm(copy);
          return tookMs;
        }),
    });
    const results = [...written.results, ...read.results];
    const both = (subject: string) =>
      combine([p50Of(results, subject, WRITE), p50Of(results, subject, READ)], (write, back) => write + back);
    return {
      results,
      problems: [...written.problems, ...read.problems],
      targets: [
        atLeast(
          "file-100mib: write and read, times faster than docker cp",
          combine([both("docker"), both("sandpiper-gvisor")], (theirs, own) => theirs / own),
          3,
        ),
      ],
    };
  },
};
