import { randomBytes } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Benchmark } from "../benchmark.ts";
import { compare, entriesOf } from "../compare.ts";
import { atLeast, combine, joined, p50Of, ratio } from "../report.ts";
import type { Subject } from "../subject.ts";

const SIZE_BYTES = 100 * 1024 * 1024;
const OURS = "sandpiper-gvisor";
const FILE_TO_FILE = { "raw-runsc": 1, docker: 1, "local-process": 1 };
const OURS_FILE_TO_FILE = { subject: OURS, label: `${OURS}, file to file`, perRound: 1 };
const ROUNDS = 15;
const CHECK_BYTES = 1024 * 1024;
const WRITE = "file-100mib write";
const READ = "file-100mib read";

export const benchmark: Benchmark = {
  title: "Write 100 MiB of random bytes to a file in a sandbox, and read them back",
  method:
    "Sandpiper: from the host program's memory, and back as a stream that is compared within the measured time, as its API works. Its second row streams from a host file and back into one, as all others do. docker: `docker cp` in both directions. raw-runsc: `cat` through runsc exec. Files that were read back are compared outside the measured time.",
  order: 50,
  timeLimitMs: 180_000,
  async run(context) {
    const dir = await context.workspace.makeDir("file-100mib");
    const source = join(dir, "source");
    const copy = join(dir, "copy");
    const content = randomBytes(SIZE_BYTES);
    await writeFile(source, content);
    const check = (bytes: Uint8Array, offset = 0) => {
      const expected = content.subarray(offset, offset + bytes.length);
      if (!expected.equals(bytes)) throw new Error("read bytes differ from the written ones");
    };
    const fromFile = (subject: Subject) => subject.writeFile?.(source);
    const toFile = async (subject: Subject) => {
      const tookMs = await subject.readFile?.(copy);
      if (tookMs === undefined) return undefined;
      checkFile(copy, check);
      await rm(copy);
      return tookMs;
    };
    const written = await compare(context, {
      name: WRITE,
      rounds: ROUNDS,
      entries: [
        { subject: OURS, perRound: 1, operation: (subject) => subject.writeBytes?.(content) },
        { ...OURS_FILE_TO_FILE, operation: fromFile },
        ...entriesOf(FILE_TO_FILE, fromFile),
      ],
    });
    const read = await compare(context, {
      name: READ,
      rounds: ROUNDS,
      entries: [
        { subject: OURS, perRound: 1, operation: (subject) => subject.readBytes?.(check) },
        { ...OURS_FILE_TO_FILE, operation: toFile },
        ...entriesOf(FILE_TO_FILE, toFile),
      ],
    });
    const report = joined([written, read]);
    const both = (subject: string) =>
      combine(
        [p50Of(report.results, subject, WRITE), p50Of(report.results, subject, READ)],
        (write, back) => write + back,
      );
    return {
      ...report,
      targets: [
        atLeast("file-100mib: write and read, times faster than docker cp", ratio(both("docker"), both(OURS)), 3),
      ],
    };
  },
};

/** Reads in pieces, so that garbage of this size does not affect the next subject. */
function checkFile(path: string, check: (bytes: Uint8Array, offset: number) => void): void {
  const piece = Buffer.alloc(CHECK_BYTES);
  const descriptor = openSync(path, "r");
  try {
    for (let offset = 0; offset < SIZE_BYTES; ) {
      const size = readSync(descriptor, piece);
      if (size === 0) throw new Error(`read only ${offset} of ${SIZE_BYTES} bytes`);
      check(piece.subarray(0, size), offset);
      offset += size;
    }
  } finally {
    closeSync(descriptor);
  }
}
