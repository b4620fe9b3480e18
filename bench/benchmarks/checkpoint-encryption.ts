import { randomBytes, randomFillSync } from "node:crypto";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { Keyring } from "../../packages/node/src/auth/keyring.ts";
import { ChunkedFiles } from "../../packages/node/src/store/chunked-files.ts";
import { DirectoryStore } from "../../packages/node/src/store/directory-store.ts";
import { type ChunkForm, TenantChunks } from "../../packages/node/src/store/tenant-chunks.ts";
import type { Benchmark, BenchmarkContext } from "../benchmark.ts";
import { plainChunks } from "../checkpoint/plain-chunks.ts";
import { interleave, onePerRound } from "../interleave.ts";
import { atMost, joined, type Report, type Result, resultOf } from "../report.ts";
import { percentile } from "../statistics.ts";

const SIZE_MB = 128;
const ROUNDS = 9;
const MB = 1024 * 1024;
const MAX_RATIO = 1.1;

/** The share of each megabyte that is random; the rest is text. */
const KINDS = { "memory image": 0.4, "random bytes": 1 } as const;

interface Sample {
  readonly saveMs: number;
  readonly saveCpuMs: number;
  readonly loadMs: number;
}

export const benchmark: Benchmark = {
  title: "What encryption adds to a checkpoint",
  method: `A file of ${SIZE_MB} MiB is saved to an empty store in a directory, and loaded again: in clear text with SHA-256, and encrypted, in turn. The targets are medians of the ratios within a round. The memory image is 40 % random and 60 % text. One process, no sandbox.`,
  order: 117,
  timeLimitMs: 600_000,
  async run(context) {
    const reports: Report[] = [];
    for (const [kind, share] of Object.entries(KINDS)) reports.push(await compareForms(context, { kind, share }));
    return joined(reports);
  },
};

async function compareForms(
  context: BenchmarkContext,
  { kind, share }: { readonly kind: string; readonly share: number },
): Promise<Report> {
  const directory = await context.workspace.makeDir(`encryption-${kind.replace(" ", "-")}`);
  const source = join(directory, "source");
  await mkdir(source);
  await writeImage(join(source, "image"), share);
  const keyring = new Keyring({ secrets: [randomBytes(32)], salt: "benchmark" });
  const forms = { plain: plainChunks, encrypted: new TenantChunks(keyring, "tenant") };
  const turn = (form: ChunkForm) => () => saveAndLoad(form, { source, directory });
  const turns = { plain: turn(forms.plain), encrypted: turn(forms.encrypted) };
  const { samples, problems } = await interleave<Sample>(onePerRound(turns), { rounds: ROUNDS, context });
  await rm(directory, { recursive: true, force: true });
  const figures = ["saveMs", "saveCpuMs", "loadMs"] as const;
  const names = { saveMs: "save", saveCpuMs: "CPU time of the save", loadMs: "load" };
  const results: Result[] = figures.flatMap((figure) =>
    [...samples].map(([subject, taken]) =>
      resultOf(
        `checkpoint-encryption, ${kind}, ${names[figure]}`,
        subject,
        taken.map((sample) => sample[figure]),
      ),
    ),
  );
  const targets = (["saveMs", "loadMs"] as const).map((figure) =>
    atMost(
      `checkpoint-encryption: ${names[figure]} of ${kind}, encrypted / plain`,
      pairedRatio(samples.get("encrypted"), samples.get("plain"), figure),
      MAX_RATIO,
    ),
  );
  return { results, targets, problems };
}

/** Other load affects both halves of a round, so the ratio within it varies less than the times. */
function pairedRatio(
  ones: readonly Sample[] | undefined,
  others: readonly Sample[] | undefined,
  figure: keyof Sample,
): number | null {
  if (ones === undefined || others === undefined) return null;
  const ratios = ones.map((one, round) => one[figure] / (others[round] as Sample)[figure]);
  return percentile(ratios, 50);
}

async function saveAndLoad(
  tenant: ChunkForm,
  { source, directory }: { readonly source: string; readonly directory: string },
): Promise<Sample> {
  const [storePath, target] = [join(directory, "store"), join(directory, "target")];
  const files = new ChunkedFiles({ store: new DirectoryStore(storePath), clock: systemClock });
  await mkdir(target);
  try {
    const cpuBefore = process.cpuUsage();
    const savedAtMs = performance.now();
    const saved = await files.save({ tenant, directory: source });
    const saveMs = performance.now() - savedAtMs;
    const { user, system } = process.cpuUsage(cpuBefore);
    const loadedAtMs = performance.now();
    await files.load(saved.files, { tenant, directory: target });
    return { saveMs, saveCpuMs: (user + system) / 1000, loadMs: performance.now() - loadedAtMs };
  } finally {
    for (const path of [storePath, target]) await rm(path, { recursive: true, force: true });
  }
}

async function writeImage(path: string, randomShare: number): Promise<void> {
  await using file = await open(path, "wx");
  const block = Buffer.alloc(MB);
  for (let written = 0; written < SIZE_MB; written += 1) {
    const randomBytesCount = Math.round(MB * randomShare);
    randomFillSync(block, 0, randomBytesCount);
    for (let at = randomBytesCount; at < MB; )
      at += block.write(`line ${written} ${at} of a text with repetition\n`, at);
    await file.write(block);
  }
  await file.sync();
}
